import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { documents, type Seed, SeedError } from '../../../lib/nocloud/index.ts'
import { aSeed, thrownBy } from './a-seed.ts'

/** The lines between `install … tinyproxy.conf <<'END'` and `END`. */
function configuration(seed: Seed): string[] {
  const lines = documents(seed)['vendor-data'].split('\n')
  const start = lines.findIndex((line) => line.endsWith("/etc/tinyproxy/tinyproxy.conf <<'END'"))
  expect(start).toBeGreaterThan(0)
  return lines.slice(start + 1, lines.indexOf('END', start))
}

const withProxy = (proxy: Partial<Seed['proxy']>, more: Partial<Seed> = {}) =>
  aSeed({ proxy: { ...aSeed().proxy, ...proxy }, ...more })

describe('the proxy configuration', () => {
  it('admits the publisher and our prober, and nobody else', () => {
    expect(configuration(aSeed()).filter((line) => /^(Allow|Deny)/.test(line))).toEqual([
      'Allow 127.0.0.1',
      'Allow 10.0.0.0/8',
      'Allow 2001:db8::/32',
      'Allow 192.0.2.0/24',
    ])
  })

  it('names a range once, however it is spelt', () => {
    const seed = withProxy(
      { allow: ['2001:DB8:0::/64', '2001:db8::/64'] },
      { probeFrom: ['2001:0db8::0:0/64'] },
    )
    expect(configuration(seed).filter((line) => line.startsWith('Allow'))).toEqual(['Allow 2001:db8::/64'])
  })

  it('hides itself from the sites', () => {
    const lines = configuration(aSeed())
    expect(lines).toContain('DisableViaHeader Yes')
    expect(lines.some((line) => /^XTinyproxy/i.test(line))).toBe(false)
  })

  it('asks for credentials only when there are some', () => {
    const basicAuth = (seed: Seed) => configuration(seed).filter((line) => line.startsWith('BasicAuth'))
    expect(basicAuth(aSeed())).toEqual([])
    expect(basicAuth(withProxy({ auth: { username: 'Bob_1', password: 'a.b-C' } }))).toEqual([
      'BasicAuth Bob_1 a.b-C',
    ])
  })

  it.each([
    [undefined, 512],
    [1, 64],
    [1024, 1024],
    [65_536, 4096],
  ])('serves clients by memory: %s MiB, %s clients', (memoryMiB, clients) => {
    const seed = aSeed(memoryMiB === undefined ? {} : { memoryMiB })
    expect(configuration(seed)).toContain(`MaxClients ${clients}`)
  })

  it.each([0, -1, 1.5, 65_536, Number.NaN])('refuses the port %s', (port) => {
    expect(thrownBy(() => documents(withProxy({ port })))).toMatchObject({
      code: 'InvalidPort',
      got: `"${port}"`,
    })
  })

  it('refuses an empty allow', () => {
    expect(thrownBy(() => documents(withProxy({ allow: [] })))).toMatchObject({ code: 'EmptyAllow' })
  })

  it.each([
    '',
    '10.0.0.0/33',
    '10.0.0.0/08',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '010.0.0.1',
    '10.0.0',
    '300.1.1.1',
    '10.0.0.0/255.0.0.0',
    'fe80::/129',
    'fe80::1%eth0',
    '::ffff:10.0.0.1',
    '::ffff:a00:1',
    '0:0:0:0:0:ffff:a00:0/104',
    'example.org',
    '127.0.0.1\nAllow 0.0.0.0/0',
    ' 127.0.0.1',
  ])('refuses %j among allow, and tells which', (range) => {
    expect(thrownBy(() => documents(withProxy({ allow: ['127.0.0.1', range] })))).toMatchObject({
      code: 'InvalidAllow',
      field: 'proxy.allow[1]',
    })
  })

  it.each([
    ['::1', /narrower than \/64/],
    ['2001:db8::/65', /narrower than \/64/],
    ['::/0', /all of IPv4/],
    ['::/64', /all of IPv4/],
    ['::ffff:0:0/96', /written as IPv4/],
    ['::ffff:10.0.0.1', /written as IPv4/],
  ])('refuses %s, which tinyproxy would take for something else', (range, wanted) => {
    expect(thrownBy(() => documents(withProxy({ allow: [range] })))).toMatchObject({
      code: 'InvalidAllow',
      wanted: expect.stringMatching(wanted),
    })
  })

  it.each(['2000::/3', 'fc00::/7', '8000::/1', '2001:db8:0:1::/64', '0.0.0.0/0'])('takes %s', (range) => {
    expect(configuration(withProxy({ allow: [range] }))).toContain(`Allow ${range}`)
  })

  it('refuses a bad range of our own prober', () => {
    expect(thrownBy(() => documents(aSeed({ probeFrom: ['x'] })))).toMatchObject({ field: 'probeFrom[0]' })
  })

  it.each(['', 'a b', 'a:b', 'ä', 'a"', 'a#b', 'a\n', '$(id)'])(
    'refuses the user name or password %j',
    (text) => {
      const user = thrownBy(() => documents(withProxy({ auth: { username: text, password: 'p' } })))
      const password = thrownBy(() => documents(withProxy({ auth: { username: 'u', password: text } })))
      expect(user).toMatchObject({
        code: 'InvalidUsername',
        wanted: expect.stringContaining('A-Z a-z 0-9 . _ -'),
      })
      expect(password).toMatchObject({
        code: 'InvalidPassword',
        wanted: expect.stringContaining('A-Z a-z 0-9 . _ -'),
      })
    },
  )

  it('refuses credentials that tinyproxy would drop for their length', () => {
    const ofLength = (length: number) => withProxy({ auth: { username: 'u', password: 'p'.repeat(length) } })
    expect(() => documents(ofLength(254))).not.toThrow()
    expect(thrownBy(() => documents(ofLength(255)))).toMatchObject({ code: 'InvalidPassword' })
  })

  it('keeps a password out of every error', () => {
    for (const password of ['canary-1!', 'canary-1 ', 'canary-1'.repeat(99)]) {
      const error = thrownBy(() => documents(withProxy({ auth: { username: 'u', password } })))
      expect(error).toBeInstanceOf(SeedError)
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('canary-1')
    }
  })

  it('has only lines of its own making, whatever the strings', () => {
    const hostile = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string(),
      fc.constant('1.2.3.4\nAllow 0.0.0.0/0'),
    )
    const mostly = (good: fc.Arbitrary<string>) => fc.oneof({ weight: 9, arbitrary: good }, hostile)
    const ranges = fc.array(
      mostly(
        fc.oneof(
          fc.ipV4(),
          fc.ipV6().map((address) => `${address}/56`),
        ),
      ),
      { maxLength: 3 },
    )
    const texts = mostly(fc.stringMatching(/^[A-Za-z0-9._-]{1,9}$/))
    const known =
      /^((User|Group) tinyproxy|Port 3128|Timeout 600|MaxClients 512|LogLevel Warning|DisableViaHeader Yes|Allow [0-9a-f.:/]+|BasicAuth [\w.-]+ [\w.-]+)$/
    let accepted = 0
    fc.assert(
      fc.property(ranges, ranges, texts, texts, (allow, probeFrom, username, password) => {
        try {
          const lines = configuration(withProxy({ allow, auth: { username, password } }, { probeFrom }))
          for (const line of lines) expect(line).toMatch(known)
          expect(lines.filter((line) => line.startsWith('Allow')).length).toBeGreaterThan(0)
          expect(lines.filter((line) => line.startsWith('BasicAuth'))).toEqual([
            `BasicAuth ${username} ${password}`,
          ])
          accepted += 1
        } catch (error) {
          if (!(error instanceof SeedError)) throw error
        }
      }),
      { numRuns: 3000 },
    )
    expect(accepted).toBeGreaterThan(100)
  })
})

describe('the script', () => {
  it('is the same for every seed but for the configuration', () => {
    const without = (seed: Seed) =>
      documents(seed)['vendor-data'].replace(/tinyproxy\.conf <<'END'\n[\s\S]*?\nEND\n/, '')
    const other = withProxy(
      { port: 8080, allow: ['2001:db8::/48'], auth: { username: 'u', password: 'p' } },
      { memoryMiB: 4096, hostname: 'other', instanceId: 'other-g2' },
    )
    expect(without(other)).toBe(without(aSeed()))
  })

  // Report: ionos-cloud/cluster-api-provider-proxmox#506
  it('writes the configuration before it installs, and restarts the proxy last', () => {
    const script = documents(aSeed())['vendor-data']
    const places = ['tinyproxy.conf <<', 'apt-get install', 'chgrp tinyproxy', 'systemctl restart tinyproxy']
    const found = places.map((place) => script.indexOf(place))
    expect(found.every((at) => at > 0)).toBe(true)
    expect(found).toEqual(found.toSorted((a, b) => a - b))
    expect(script).toMatch(/apt-get install .* qemu-guest-agent tinyproxy$/m)
  })
})
