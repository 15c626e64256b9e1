/**
 * What a terminal obeys, or reorders a line by, as JSON writes it (`\u001b`), so that a JSON text stays what it is; line
 * feeds and tabs stay. For the last door before a screen, and for texts that quote what came from outside.
 */
export const escapeControls = (text: string): string =>
  text.replace(/[^\P{Cc}\n\t]|[\p{Cf}\u2028\u2029]/gu, (character) =>
    // By UTF-16 units, as JSON does.
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )
