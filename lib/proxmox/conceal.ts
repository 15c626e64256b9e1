/** What is shorter is left: it would be found everywhere. */
const fewest = 4
/** So many letters of a secret in a row are taken for a part of it. */
const window = 12
/** So long a piece of a part lies on one of every so many places of a text, wherever the part begins: there it is looked for first. */
const piece = window / 2
/** Longer texts are lists that a call asked for; of an error no more than this is ever looked at. */
const atMost = 65_536

/**
 * Takes secrets out of a text that somebody else wrote and may have quoted from our request: as they are, and in the forms in
 * which servers and gateways print what they were sent. A quotation may be cut short anywhere, so parts of them count, too;
 * in a very long text only whole ones do.
 */
export function concealer(secrets: readonly string[]): (text: string) => string {
  const forms = [...new Set(secrets.filter(({ length }) => length >= fewest).flatMap(formsOf))]
  // The longest first, so that no part of one is left by another.
  forms.sort((a, b) => b.length - a.length)
  const short = forms.filter(({ length }) => length < window)
  let pieces: Set<string> | undefined
  let windows: Set<string> | undefined
  return (text) => {
    if (forms.length === 0) return text
    if (text.length > atMost) return withoutWhole(text, forms)
    pieces ??= piecesOf(forms, piece)
    if (!holdsPiece(text, pieces)) return withoutWhole(text, short)
    windows ??= piecesOf(forms, window)
    return withoutWhole(withoutParts(text, windows), short)
  }
}

const withoutWhole = (text: string, forms: readonly string[]) =>
  forms.reduce((rest, form) => (rest.includes(form) ? rest.replaceAll(form, mark) : rest), text)

const mark = '[secret]'

function holdsPiece(text: string, pieces: ReadonlySet<string>): boolean {
  for (let at = 0; at + piece <= text.length; at += piece)
    if (pieces.has(text.slice(at, at + piece))) return true
  return false
}

function withoutParts(text: string, windows: ReadonlySet<string>): string {
  const isPart = (from: number) => windows.has(text.slice(from, from + window))
  const kept: string[] = []
  let from = 0
  for (let at = 0; at + window <= text.length; at++) {
    if (!isPart(at)) continue
    kept.push(text.slice(from, at), mark)
    while (isPart(at + 1)) at++
    from = at + window
    at = from - 1
  }
  return kept.length === 0 ? text : [...kept, text.slice(from)].join('')
}

const piecesOf = (forms: readonly string[], length: number): Set<string> =>
  new Set(
    forms.flatMap((form) =>
      Array.from({ length: Math.max(0, form.length - length + 1) }, (_, at) => form.slice(at, at + length)),
    ),
  )

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
