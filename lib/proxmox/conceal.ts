const fewest = 4

/**
 * Takes secrets out of a text that somebody else wrote and may have quoted from our request: as they are, and in the forms in
 * which servers and gateways print what they were sent. What is shorter than four characters is left: it would be found
 * everywhere.
 */
export function concealer(secrets: readonly string[]): (text: string) => string {
  const forms = [...new Set(secrets.filter(({ length }) => length >= fewest).flatMap(formsOf))]
  // The longest first, so that no part of one is left by another.
  forms.sort((a, b) => b.length - a.length)
  return (text) =>
    forms.reduce((rest, form) => (rest.includes(form) ? rest.replaceAll(form, '[secret]') : rest), text)
}

function formsOf(secret: string): string[] {
  const percent = encodeURIComponent(secret.toWellFormed())
  const json = JSON.stringify(secret).slice(1, -1)
  const html = secret
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
  const forms = [secret, percent, percent.toLowerCase(), percent.replaceAll('%20', '+'), json, html]
  return [...forms, ...base64Cores(secret), Buffer.from(secret).toString('hex')]
}

/** What base64 makes of it wherever in a longer text it stands, without the characters that its neighbours have a part in. */
function base64Cores(secret: string): string[] {
  const bytes = Buffer.from(secret)
  // So short a core would be found by chance.
  if (bytes.length < 8) return []
  return [0, 1, 2].flatMap((before) => {
    const whole = Buffer.concat([Buffer.alloc(before), bytes])
    const text = whole.toString('base64').replace(/=+$/, '')
    const from = Math.ceil((before * 8) / 6)
    const core = text.slice(from, Math.floor((whole.length * 8) / 6))
    return [core, core.replaceAll('+', '-').replaceAll('/', '_')]
  })
}
