import { symbols } from 'pino'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createLogger, withIds } from '../../lib/log.ts'
import type { RawAnswer, RawRequest } from '../../lib/proxmox/index.ts'
import { type Lab, openLab } from '../lab/lab.ts'

// What is secret is made recognisable, whatever stands between us and Proxmox quotes our own requests back at us, and then
// everything that a life leaves behind is searched for it.

const PASSWORD = 'cAnary-pass.7731-zebra_quartz'
const USER_DATA_LINE = 'echo canary-of-the-publisher-5b1f "quoted & <odd>" %41 ü'
const userData = `#!/bin/sh\n${USER_DATA_LINE}\n`

let lab: Lab
afterEach(() => lab?.close())

/** A secret in every form in which something may print it. */
function formsOf(secret: string): string[] {
  const base64 = [0, 1, 2].map((skip) =>
    Buffer.from('x'.repeat(skip) + secret)
      .toString('base64')
      .slice(4, -4),
  )
  const hex = Buffer.from(secret).toString('hex')
  return [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1), hex, ...base64]
}

/** What of a request somebody might quote: who asked, and the part of what was sent that holds secrets. */
function quoted({ method, path, headers, body }: RawRequest): string {
  const text = Buffer.from(body ?? []).toString('utf8')
  const parts = ['BasicAuth', '#!/bin/sh\necho canary'].map((start) => {
    const at = text.indexOf(start)
    return at < 0 ? '' : text.slice(at, at + 160)
  })
  const { authorization = '' } = headers
  return `${authorization} ${method} ${path} ${parts.join(' ') || text.slice(0, 200)}`
}

type Style = (quote: string) => RawAnswer | Error
const answer = (status: number, reason: string, body: unknown): RawAnswer => ({
  status,
  reason,
  headers: {},
  body: typeof body === 'string' ? body : JSON.stringify(body),
})

const inAllForms = (quote: string) =>
  [quote, Buffer.from(quote).toString('base64'), encodeURIComponent(quote)].join(' ')

const styles: Record<string, Style> = {
  'a message': (quote) => answer(500, 'x', { data: null, message: inAllForms(quote) }),
  'the errors of its parameters': (quote) =>
    answer(400, 'Parameter verification failed.', {
      data: null,
      errors: { name: quote, [quote.slice(0, 120)]: encodeURIComponent(quote) },
    }),
  'a reason phrase': (quote) => answer(403, quote.replaceAll('\n', ' '), ''),
  'a refusal of the token': (quote) => answer(401, quote.replaceAll('\n', ' '), ''),
  'the page of a gateway': (quote) =>
    answer(502, 'Bad Gateway', `<pre>${quote.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</pre>`),
  'something that is no answer': (quote) => answer(200, 'OK', { data: { [quote]: quote } }),
  'the task it began': (quote) =>
    answer(200, 'OK', { data: { status: 'stopped', exitstatus: inAllForms(quote) } }),
  'a broken connection': (quote) =>
    Object.assign(new Error(inAllForms(quote)), { code: 'ECONNRESET', sent: true }),
}

const calls: Record<string, RegExp> = {
  clone: /^POST \S+\/clone$/,
  upload: /^POST \S+\/upload$/,
  'the end of a task': /^GET \S+\/tasks\/[^/]+\/status$/,
  configure: /^PUT \S+\/config$/,
  config: /^GET \S+\/qemu\/5\d+\/config$/,
  start: /^POST \S+\/status\/start$/,
  status: /^GET \S+\/status\/current$/,
  agent: /^GET \S+\/agent\/network-get-interfaces$/,
  'whether a number is free': /^GET \S+\/cluster\/nextid/,
  nodes: /^GET \S+\/nodes$/,
  volumes: /^GET \S+\/storage\/[^/]+\/content/,
  destroy: /^DELETE \S+\/qemu\/\d+/,
  'the deletion of a seed': /^DELETE \S+\/content\//,
}
const names = Object.keys(styles)
const cases = [
  ...names.map((style) => ['upload', style]),
  // The others take turns.
  ...Object.keys(calls).map((call, index) => [call, names[index % names.length] ?? '']),
] as [string, string][]
/** Some calls are made for a day when they fail: what is told of the hundredth time was told of the first. */
const ENOUGH = 100

describe('of the token, the password and the publisher’s userData', () => {
  it.each(cases)(
    'nothing is left anywhere when %s is answered with what was sent, in %s',
    async (call, style) => {
      const seen: RawRequest[] = []
      let struck = 0
      lab = await openLab({
        nodes: 2,
        passwords: { pw: PASSWORD },
        interpose: ({ surroundings, exchange }) => ({
          surroundings,
          exchange: async (endpoint, request) => {
            seen.push(request)
            const line = `${request.method} ${request.path.replace('/api2/json', ' /').replace(' ', '')}`
            if (!calls[call]?.test(line)) return exchange(endpoint, request)
            struck += 1
            const reply = styles[style]?.(quoted(request))
            if (reply instanceof Error) throw reply
            if (!reply) throw new Error(`there is no style ${style}`)
            return reply
          },
        }),
      })
      const token = lab.world.tokens.egress
      const secrets = [token.slice(token.lastIndexOf('=') + 1), PASSWORD, USER_DATA_LINE]
      lab.request('alpha', {
        spec: { userData, proxy: { auth: { username: 'ci', passwordParameter: 'pw' } } },
      })
      await lab.run(
        () => ['Ready', 'Failed'].includes(lab.row('alpha')?.phase ?? '') || lab.decisions.length > ENOUGH,
      )
      lab.remove('alpha')
      const before = lab.decisions.length
      await lab.run(() => lab.queues.size() === 0 || lab.decisions.length > before + ENOUGH)

      expect(struck).toBeGreaterThan(0)
      const left = {
        // The one place where it is kept is an item of its own.
        rows: lab.ledger.items().filter(({ uid }) => uid !== 'userdata#alpha'),
        claims: lab.claims.all(),
        suspects: lab.claims.suspected(),
        events: lab.outcomes,
        letters: lab.queues.deadLetters,
        decisions: lab.decisions,
        calls: lab.calls,
        log: await logged(lab),
        vms: lab.sim.vms(),
        paths: seen.map(({ path }) => path),
        forms: seen
          .filter(({ path }) => !path.endsWith('/upload'))
          .map(({ body }) => Buffer.from(body ?? []).toString()),
      }
      for (const [where, what] of Object.entries(left)) {
        const text = JSON.stringify(what)
        for (const form of secrets.flatMap(formsOf))
          expect({ where, has: text.includes(form) && form }).toEqual({ where, has: false })
      }
    },
  )
})

/** All lines of the log that the functions would write of this life, at every level. */
async function logged({ decisions, calls: made, ledger }: Lab): Promise<string[]> {
  const lines: string[] = []
  const log = createLogger('trace')
  // pino types its symbols, but not what they lead to.
  const stream = Reflect.get(log, symbols.streamSym) as { write(line: string): boolean }
  const spy = vi.spyOn(stream, 'write').mockImplementation((line) => lines.push(line) > 0)
  withIds({ requestId: 'r', messageId: 'm' }, () => {
    for (const decision of decisions) log.info(decision, 'decision')
    for (const call of made) log.debug(call, 'call')
    for (const { problem } of ledger.rows())
      log.error({ err: new Error(problem?.reason ?? 'none') }, 'the record was not processed')
  })
  spy.mockRestore()
  expect(lines.length).toBeGreaterThan(2)
  return lines
}
