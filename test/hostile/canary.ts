import { inspect } from 'node:util'
import { symbols } from 'pino'
import { expect, vi } from 'vitest'
import { createLogger, withIds } from '../../lib/log.ts'
import type { RawAnswer, RawRequest } from '../../lib/proxmox/index.ts'
import type { Lab } from '../lab/lab.ts'

/** What is secret in a test, made recognisable; the API token is the world's own. */
export const PASSWORD = 'cAnary-pass.7731-zebra_quartz'
export const USER_DATA_LINE = 'echo canary-of-the-publisher-5b1f "quoted & <odd>" %41 ü'
export const userData = `#!/bin/sh\n${USER_DATA_LINE}\n`
export const secretSpec = {
  userData,
  proxy: { auth: { username: 'ci', passwordParameter: 'pw' } },
}

/** The part of a token that is secret. */
export const secretOf = (token: string) => token.slice(token.indexOf('=') + 1)

/** A half that is shorter is found by chance. */
const SHORTEST_HALF = 12

/** A secret in every form in which something may print it, whole and by halves. */
export function formsOf(secret: string): string[] {
  const middle = Math.ceil(secret.length / 2)
  const halves = [secret.slice(0, middle), secret.slice(middle)].filter(
    ({ length }) => length > SHORTEST_HALF,
  )
  return [secret, ...halves].flatMap(printed)
}

function printed(text: string): string[] {
  const base64 = [0, 1, 2].map((skip) =>
    Buffer.from('x'.repeat(skip) + text)
      .toString('base64')
      .slice(4, -4),
  )
  const hex = Buffer.from(text).toString('hex')
  return [text, encodeURIComponent(text.toWellFormed()), JSON.stringify(text).slice(1, -1), hex, ...base64]
}

/** Each thing by the name of where it was left: none of it has a secret in it, in any form. */
export function expectNoTrace(left: Record<string, unknown>, secrets: readonly string[]): void {
  const forms = [...new Set(secrets.flatMap(formsOf))]
  for (const [where, what] of Object.entries(left)) {
    const text = typeof what === 'string' ? what : JSON.stringify(what)
    const found = forms.filter((form) => text.includes(form))
    const around =
      found[0] === undefined ? '' : text.slice(Math.max(0, text.indexOf(found[0]) - 150)).slice(0, 400)
    expect({ where, found, around }).toEqual({ where, found: [], around: '' })
  }
}

/** All that a life leaves behind, but for the one place where userData is kept. */
export async function leftBy(lab: Lab): Promise<Record<string, unknown>> {
  return {
    rows: lab.ledger.items().filter(({ uid }) => !String(uid).startsWith('userdata#')),
    claims: lab.claims.all(),
    suspects: lab.claims.suspected(),
    events: lab.outcomes,
    // What was published is kept to the letter.
    letters: lab.queues.deadLetters.filter(({ body }) => !body.includes('"ProxyRequested"')),
    obituaries: lab.queues.deadLetters.map(({ obituary }) => obituary),
    decisions: lab.decisions,
    calls: lab.calls,
    metrics: lab.measurements,
    log: await logged(lab),
    vms: lab.sim.vms(),
  }
}

/** All lines of the log that the functions would write of a life, at every level. */
async function logged({ decisions, calls: made, ledger }: Lab): Promise<string[]> {
  const lines = await logOf((log) => {
    for (const decision of decisions) log.info(decision, 'decision')
    for (const call of made) log.debug(call, 'call')
    for (const item of ledger.items())
      log.error(
        { err: new Error(JSON.stringify(Reflect.get(item, 'problem'))) },
        'the record was not processed',
      )
  })
  return lines
}

/** What is written to the log meanwhile. */
export async function logOf(work: (log: ReturnType<typeof createLogger>) => unknown): Promise<string[]> {
  const lines: string[] = []
  const log = createLogger('trace')
  // pino types its symbols, but not what they lead to.
  const stream = Reflect.get(log, symbols.streamSym) as { write(line: string): boolean }
  const spy = vi.spyOn(stream, 'write').mockImplementation((line) => lines.push(line) > 0)
  await withIds({ requestId: 'r', messageId: 'm' }, () => work(log))
  spy.mockRestore()
  return lines
}

/** An error to its last cause, as whoever throws, logs or inspects it would show it. */
export async function shownOf(error: unknown): Promise<Record<string, unknown>> {
  const log = await logOf((logger) => logger.error({ err: error }, 'the record was not processed'))
  return { error: inspect(error, { depth: 20, showHidden: true, maxStringLength: null }), log }
}

/** What of a request somebody might quote: who asked, and the part of what was sent that holds secrets. */
export function quoted({ method, path, headers, body }: RawRequest): string {
  const text = Buffer.from(body ?? []).toString('utf8')
  const parts = ['BasicAuth', '#!/bin/sh\necho canary'].map((start) => {
    const at = text.indexOf(start)
    return at < 0 ? '' : text.slice(at, at + 160)
  })
  const { authorization = '' } = headers
  return `${authorization} ${method} ${path} ${parts.join(' ') || text.slice(0, 200)}`
}

export type Style = (quote: string) => RawAnswer | Error

export const answer = (status: number, reason: string, body: unknown): RawAnswer => ({
  status,
  reason,
  headers: {},
  body: typeof body === 'string' ? body : JSON.stringify(body),
})

const inAllForms = (quote: string) =>
  [quote, Buffer.from(quote).toString('base64'), encodeURIComponent(quote.toWellFormed())].join(' ')

/** Behind so many letters that whoever bounds what is quoted cuts it in the middle of a secret, with more than half of it left. */
function atTheCut(quote: string, length: number, secret: string): string {
  const from = quote.slice(Math.max(0, quote.indexOf(secret)))
  return '.'.repeat(length - Math.ceil(secret.length * 0.7)) + from
}

/** Ways in which whatever stands between us and Proxmox answers with what it was sent. */
export const styles: Record<string, Style> = {
  'a message': (quote) => answer(500, 'x', { data: null, message: inAllForms(quote) }),
  'the errors of its parameters': (quote) =>
    answer(400, 'Parameter verification failed.', {
      data: null,
      errors: { name: quote, [quote.slice(0, 120)]: encodeURIComponent(quote.toWellFormed()) },
    }),
  'the names of its parameters': (quote) =>
    answer(400, 'Parameter verification failed.', {
      data: null,
      errors: Object.fromEntries(quote.split(/\s+/).map((word) => [word, 'no such parameter'])),
    }),
  'a reason phrase': (quote) => answer(403, quote.replaceAll('\n', ' '), ''),
  'a refusal of the token': (quote) => answer(401, quote.replaceAll('\n', ' '), ''),
  'the page of a gateway': (quote) =>
    answer(502, 'Bad Gateway', `<pre>${quote.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</pre>`),
  'a page that is cut short': (quote) => answer(502, quote.slice(0, 'PVEAPIToken='.length + 40), ''),
  'errors that we cut short, in the password': (quote) =>
    answer(400, 'Parameter verification failed.', {
      errors: { name: atTheCut(quote, 1000, PASSWORD) },
    }),
  'errors that we cut short, in the userData': (quote) =>
    answer(400, 'Parameter verification failed.', {
      errors: { name: atTheCut(quote, 1000, USER_DATA_LINE) },
    }),
  'a message that we cut short': (quote) => answer(500, 'x', { message: atTheCut(quote, 4096, PASSWORD) }),
  'something that is no answer': (quote) => answer(200, 'OK', { data: { [quote]: quote } }),
  'the task it began': (quote) =>
    answer(200, 'OK', { data: { status: 'stopped', exitstatus: inAllForms(quote) } }),
  'a broken connection': (quote) =>
    Object.assign(new Error(inAllForms(quote)), { code: 'ECONNRESET', sent: true }),
}
