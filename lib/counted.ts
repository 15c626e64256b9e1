/** `1 row`, `2 rows`; what is not made with an s is given. */
export const counted = (number: number, one: string, several = `${one}s`) =>
  `${number} ${number === 1 ? one : several}`
