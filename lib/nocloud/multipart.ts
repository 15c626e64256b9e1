/** One part of a document that cloud-init takes apart again. */
export type Part = { type: 'cloud-config' | 'x-shellscript'; filename: string; text: string }

const boundary = 'egress-part'

/**
 * Several documents in one, as cloud-init reads them: a MIME message.
 *
 * Base64 would hide the texts from whoever looks at a seed, so they stand as they are: our own, in ASCII,
 * and none may hold a line that looks like the border between parts.
 *
 * Source: RFC 2046, 5.1; cloud-init documentation, "MIME multi-part archive".
 */
export function multipart(parts: Part[]): string {
  const head = ['MIME-Version: 1.0', `Content-Type: multipart/mixed; boundary="${boundary}"`, '']
  const body = parts.flatMap(({ type, filename, text }) => {
    if (!/^[\n\x20-\x7e]*$/.test(text) || `\n${text}`.includes(`\n--${boundary}`)) {
      throw new Error(`${filename} cannot stand in a multipart message`)
    }
    return [
      '--' + boundary,
      `Content-Type: text/${type}; charset="us-ascii"`,
      `Content-Disposition: attachment; filename="${filename}"`,
      '',
      text,
    ]
  })
  return [...head, ...body, `--${boundary}--`, ''].join('\n')
}
