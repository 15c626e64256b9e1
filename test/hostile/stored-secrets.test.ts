import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm'
import { mockClient } from 'aws-sdk-client-mock'
import * as fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createProxmox, isProxmoxError, type RawRequest } from '../../lib/proxmox/index.ts'
import { createSecrets, type Secrets } from '../../lib/secrets.ts'
import { type Lab, openLab, settled } from '../lab/lab.ts'
import { certify, serve } from '../lib/proxmox/tls-server.ts'
import { expectNoTrace, leftBy, secretSpec, shownOf } from './canary.ts'

// Whatever is stored as a token or as a password: it is used as it is, or an error says that it cannot be, and not what it is.

const SECRET = 'c4n4ry-0f-the-token-5b1f-zebra'
/** Letters that end headers, lines and words, and others. */
const breaking = fc.constantFrom(
  '\r',
  '\n',
  '\r\nx-injected: 1',
  '\0',
  '\t',
  ' ',
  '\u0085',
  '\u2028',
  'ü',
  '😀',
  '\ud800',
  '=',
  '!',
  ';',
  ':',
  '"',
  '\\',
)
const token = fc.oneof(
  fc
    .tuple(
      fc.constantFrom('', 'PVEAPIToken=', 'user@pve!id=', 'user!id=', 'user@pve=', '='),
      fc.array(breaking, { maxLength: 3 }),
    )
    .map(([start, inside]) => `${start}${SECRET}${inside.join('x')}${SECRET}`),
  fc.tuple(breaking, breaking).map(([before, after]) => `${before}user@pve!id=${SECRET}${after}`),
  fc.string({ unit: 'binary', maxLength: 40 }).map((text) => `user@pve!id=${SECRET}${text}`),
  fc.constantFrom(
    ' ',
    '\n',
    `user@pve!id=${SECRET.repeat(150)}`,
    `user@pve!id=${SECRET}=`,
    `a@b!c=${SECRET}=x`,
  ),
)

describe('a stored token, whatever it is,', () => {
  let server: Awaited<ReturnType<typeof serve>>
  let fingerprint: string
  const ssm = mockClient(SSMClient)
  beforeAll(async () => {
    const certificate = await certify('pve1')
    ;({ fingerprint } = certificate)
    server = await serve(certificate, (request, response) => {
      // As bad as a gateway can be, and it cuts what it quotes.
      response.writeHead(401, { 'content-type': 'text/plain' })
      response.end(`no: ${request.headers.authorization}`.slice(0, 60))
    })
  })
  afterAll(async () => {
    ssm.restore()
    await server.close()
  })

  const secretsWith = (Value: string): Secrets => {
    ssm.on(GetParameterCommand).resolves({ Parameter: { Value } })
    return createSecrets({ ssm: () => new SSMClient({ region: 'x' }), parameters: { ssm: true } })
  }

  it('is sent as the one header it is to be, or is told to be none; never is it shown', async () => {
    await fc.assert(
      fc.asyncProperty(token, async (value) => {
        server.requests.length = 0
        const secrets = secretsWith(value)
        const client = createProxmox({
          endpoints: [{ url: server.url, node: 'pve1', fingerprint }],
          token: {
            get: async () =>
              [(await secrets.read({ ssm: '/t' }, { fresh: true })) ?? ''].filter((one) => one !== ''),
          },
        })
        const error: unknown = await client
          .with({ signal: new AbortController().signal })
          .nodes()
          .catch((thrown: unknown) => thrown)
        await client.close()
        expect(isProxmoxError(error, 'Unauthorized'), String(error)).toBe(true)
        for (const { headers } of server.requests) {
          expect(headers).not.toHaveProperty('x-injected')
          expect(headers.authorization).toBe(`PVEAPIToken=${value.trim()}`)
        }
        expectNoTrace(await shownOf(error), [SECRET])
      }),
      { numRuns: 30 },
    )
  })
})

describe('a stored password, whatever it is,', () => {
  let lab: Lab
  afterEach(() => lab.close())
  const values = fc.sample(
    fc.oneof(
      fc
        .array(fc.oneof(breaking, fc.constant(SECRET)), { minLength: 1, maxLength: 4 })
        .map((parts) => `${SECRET}${parts.join('')}`),
      fc.string({ unit: 'binary', maxLength: 60 }).map((text) => `${text}${SECRET}`),
    ),
    10,
  )

  it.each([...values, '', ' ', '\n', SECRET.repeat(150), `${SECRET}\nAllow 0.0.0.0/0`, `END\n${SECRET}`])(
    'makes a proxy that asks for just that, or a failure that says where it is kept (%#)',
    async (value) => {
      const sent: RawRequest[] = []
      lab = await openLab({
        nodes: 1,
        passwords: { pw: value },
        interpose: ({ surroundings, exchange }) => ({
          surroundings,
          exchange: (endpoint, request) => {
            sent.push(request)
            return exchange(endpoint, request)
          },
        }),
      })
      lab.request('alpha', { spec: secretSpec })
      const row = await settled(lab, 'alpha')
      const disc = sent
        .filter(({ path }) => path.endsWith('/upload'))
        .map(({ body }) => Buffer.from(body ?? []).toString())
        .join('')
      if (row.phase === 'Ready') {
        const lines = [...disc.matchAll(/^BasicAuth .*$/gm)].map(([line]) => line)
        expect(new Set(lines)).toEqual(new Set([`BasicAuth ci ${value}`]))
      } else {
        expect(row.problem?.code).toMatch(/^(?:SeedRefused|PasswordMissing)$/)
        expect(disc).toBe('')
      }
      expectNoTrace(await leftBy(lab), [SECRET])
    },
  )
})

describe('the file that passwords are kept in on one machine', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'egress-hostile-secrets-'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))
  const open = (text: string) => {
    const path = join(folder, 'parameters.yml')
    writeFileSync(path, text)
    return createSecrets({
      ssm: () => {
        throw new Error('nobody is asked')
      },
      parameters: { file: path },
    })
  }

  it.each([
    ['pin: 007', '007'],
    ['pin: 1e3', '1e3'],
    ['pin: 0x1F', '0x1F'],
    ['pin: true', 'true'],
    ['pin: 2026-01-01', '2026-01-01'],
    ['pin: "a: b"', 'a: b'],
    ['pin:', undefined],
    ['pin: ""', undefined],
    ['other: 1', undefined],
    ['- pin', undefined],
  ])('has what was typed: %s', async (text, value) => {
    expect(await open(text).parameter('pin')).toBe(value)
  })

  it.each([
    `pin: !${SECRET} x`,
    `pin: !!str${SECRET} [1]`,
    `pin: *${SECRET}`,
    `pin: ${SECRET}: ${SECRET}`,
    `pin: |${SECRET}\n`,
    `pin: "${SECRET}`,
    `pin: [${SECRET}`,
    `pin: {a: ${SECRET}}`,
    `pin: [${SECRET}]`,
    `pin: @${SECRET}`,
    `pin: a\n${SECRET}: b\n${SECRET}: c\n`,
    `pin: "\\q${SECRET}"`,
    `pin: a\n---\n${SECRET}`,
    `${SECRET}\npin: a`,
    `? {${SECRET}: 1}\n: pin\npin: [x]`,
  ])('says that it cannot be read, and nothing that is in it, to nobody (%#)', async (text) => {
    const warned: unknown[] = []
    const listen = (warning: unknown) => warned.push(warning)
    process.on('warning', listen)
    const error: unknown = await open(text)
      .parameter('pin')
      .then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
    // A warning is told in the turn after.
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', listen)
    expect(error).toMatchObject({ code: 'Unauthorized', message: expect.stringContaining('parameters.yml') })
    expect(warned).toEqual([])
    expectNoTrace(await shownOf(error), [SECRET])
  })
})
