/** A text that others wrote, on one line and without what a terminal would obey. */
export const visible = (text: string, atMost = Number.POSITIVE_INFINITY): string => {
  const line = text.replace(/[\r\n\t]+/g, ' ').replace(/[\p{Cc}\p{Cf}]/gu, '\ufffd')
  return line.length <= atMost ? line : `${line.slice(0, atMost - 1)}…`
}
