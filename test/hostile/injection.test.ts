import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { changes } from '../../functions/create/changes.ts'
import type { ProxyRequested } from '../../functions/create/event.ts'
import { parse } from '../../functions/create/parse.ts'
import { InvalidEvent } from '../../lib/events.ts'
import { describe as described, readMark } from '../../lib/mark.ts'
import { macOf, seedFile, vmName } from '../../lib/names.ts'
import { documents, makeSeed, type Seed, SeedError } from '../../lib/nocloud/index.ts'
import { readConfig } from '../../lib/proxmox/vm-config.ts'
import { readInstance } from '../../sim/guest/instance.ts'
import { readDisc } from '../../sim/guest/iso9660.ts'
import { decodeForm } from '../../sim/http/form.ts'
import { aConfig } from '../lib/a-config.ts'
import { fakeCluster, ok, upid } from '../lib/proxmox/fake-exchange.ts'

// What a publisher may say, as far into the machine as it gets: it is read there as what it is, and as nothing more.

const config = aConfig()
const nasty = [
  '\n',
  '\r\n',
  '\0',
  '"',
  "'",
  '`',
  '\\',
  '$(id)',
  '; rm -rf /',
  ' #',
  ': ',
  '- ',
  '{',
  '}',
  '[',
  ',',
  '&a ',
  '*a',
  '!!python/object/apply:os.system ["id"]',
  '%',
  '@',
  '|',
  '<<END',
  'END',
  '\nEND\n',
  '--egress-part',
  '--egress-part--',
  'Allow 0.0.0.0/0',
  '\nAllow 0.0.0.0/0',
  'runcmd:',
  ',media=disk',
  ',bridge=vmbr1',
  ';',
  '=',
  '&',
  '+',
  '\u2028',
  '\u0085',
  'ä',
  '\ud83d\ude00',
]
/** So seldom nasty that a request of ten such is accepted now and then. */
const spiced = (plain: fc.Arbitrary<string>) =>
  fc.oneof(
    { weight: 8, arbitrary: plain },
    {
      weight: 1,
      arbitrary: fc
        .tuple(plain, fc.constantFrom(...nasty), plain)
        .map(([before, spice, after]) => before + spice + after),
    },
  )
const chars = (alphabet: string, most: number, least = 1) =>
  fc
    .array(fc.constantFrom(...alphabet.split('')), { minLength: least, maxLength: most })
    .map((list) => list.join(''))

const name = spiced(chars('aZ0', 12))
const word = spiced(chars('aZ09._-', 12))
const range = spiced(
  fc.oneof(
    fc.tuple(fc.ipV4(), fc.nat({ max: 32 })).map(([address, bits]) => `${address}/${bits}`),
    fc.integer({ min: 4, max: 64 }).map((bits) => `2001:db8::/${bits}`),
    fc.tuple(fc.ipV6(), fc.nat({ max: 64 })).map(([address, bits]) => `${address}/${bits}`),
  ),
)
const userData = fc.oneof(
  fc.constant('#cloud-config\nruncmd: [[touch, /x]]\nvendor_data: {enabled: true}\n'),
  spiced(fc.string({ maxLength: 40 })).map((text) => `#!/bin/sh\n${text}`),
  spiced(fc.string({ maxLength: 40 })).map((text) => `#cloud-config\n${JSON.stringify({ a: text })}\n`),
  fc.constant('no format that cloud-init knows'),
)
const event = fc.record({
  type: fc.constant('ProxyRequested'),
  uid: spiced(chars('az09', 12)),
  generation: fc.integer({ min: 1, max: 5 }),
  name,
  spec: fc.record({
    zone: fc.constant('lab-1'),
    image: fc.constant('debian-12'),
    proxy: fc.record({
      port: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 65_535 }) }, fc.integer()),
      allow: fc.array(range, { minLength: 1, maxLength: 4 }),
      auth: fc.record({ username: word, passwordParameter: spiced(chars('aZ09/._-', 20)) }),
    }),
    userData,
    labels: fc.dictionary(spiced(chars('aZ0._/-', 8)), spiced(fc.string({ maxLength: 10 })), { maxKeys: 3 }),
  }),
})

function accepted(candidate: object): ProxyRequested | undefined {
  try {
    const message = parse(JSON.stringify(candidate), config)
    return message.type === 'ProxyRequested' ? message : undefined
  } catch (error) {
    if (error instanceof InvalidEvent) return undefined
    throw error
  }
}

/** The seed that the step makes of a request; undefined when it is refused. */
function seedOf({ uid, generation, name, spec }: ProxyRequested, password: string): Seed {
  const { port = 3128, allow = ['10.0.0.0/8'], auth } = spec.proxy ?? {}
  return {
    instanceId: `${uid}-g${generation}`,
    hostname: vmName({ uid, name }),
    mac: macOf('test', uid),
    proxy: { port, allow, ...(auth && { auth: { username: auth.username, password } }) },
    probeFrom: ['127.0.0.1/32'],
    ...(spec.userData === undefined ? {} : { userData: spec.userData }),
  }
}

const yaml = (text: string) => parseYaml(text, { version: '1.1' })
/** The lines of a here-document in our script, and the script without them. */
function taken(script: string, path: string): { lines: string[]; rest: string } {
  const all = script.split('\n')
  const from = all.findIndex((line) => line.endsWith(`${path} <<'END'`))
  const to = all.indexOf('END', from)
  return { lines: all.slice(from + 1, to), rest: all.toSpliced(from + 1, to - from - 1).join('\n') }
}
const ours = (vendorData: string) => {
  const parts = readInstance(
    {
      metaData: Buffer.from('{}'),
      userData: Buffer.from('#cloud-config\n{}'),
      vendorData: Buffer.from(vendorData),
    },
    () => {},
  )
  expect(parts.vendorScripts).toHaveLength(1)
  expect(parts.config).toEqual({ locale: 'false' })
  return parts.vendorScripts[0]?.text ?? ''
}
const plainScript = taken(
  ours(
    documents({ ...seedOf({ uid: 'a', generation: 1, name: 'a', spec: {} } as never, '') })['vendor-data'],
  ),
  'tinyproxy.conf',
).rest

describe('a request, whatever is in it,', () => {
  let refused = 0
  let made = 0

  it('is refused, or makes a machine of exactly what it says', () => {
    fc.assert(
      fc.property(event, word, (candidate, password) => {
        const request = accepted(candidate)
        if (!request) {
          refused += 1
          return
        }
        const seed = seedOf(request, password)
        let texts: ReturnType<typeof documents>
        try {
          texts = documents(seed)
        } catch (error) {
          // Only the password is not known before.
          expect(error).toBeInstanceOf(SeedError)
          expect(error).toMatchObject({ field: 'proxy.auth.password' })
          return
        }
        made += 1
        expect(yaml(texts['meta-data'])).toEqual({
          'instance-id': seed.instanceId,
          'local-hostname': seed.hostname,
        })
        expect(yaml(texts['network-config'])).toEqual({
          version: 2,
          ethernets: {
            eth0: {
              match: { macaddress: seed.mac },
              'set-name': 'eth0',
              dhcp4: true,
              'dhcp-identifier': 'mac',
            },
          },
        })
        expect(texts['user-data']).toBe(seed.userData ?? '#cloud-config\n{}\n')
        const { lines, rest } = taken(ours(texts['vendor-data']), 'tinyproxy.conf')
        // The same script for everybody, around lines that each say one thing.
        expect(rest).toBe(plainScript)
        const { username = '' } = seed.proxy.auth ?? {}
        expect(lines.filter((line) => !line.startsWith('Allow '))).toEqual([
          'User tinyproxy',
          'Group tinyproxy',
          `Port ${seed.proxy.port}`,
          'Timeout 600',
          'MaxClients 512',
          'LogLevel Warning',
          'DisableViaHeader Yes',
          `BasicAuth ${username} ${password}`,
        ])
        const allowed = lines.filter((line) => line.startsWith('Allow ')).map((line) => line.slice(6))
        expect(allowed.length).toBeLessThanOrEqual(seed.proxy.allow.length + 1)
        for (const one of allowed) expect(one).toMatch(/^[0-9a-f.:]+(?:\/\d{1,3})?$/)
        for (const one of seed.proxy.allow.filter((text) => !text.includes(':')))
          expect(allowed).toContain(one)
      }),
      { numRuns: 1500 },
    )
    // Else it would prove nothing.
    expect(Math.min(refused, made)).toBeGreaterThan(20)
  })

  it.each(['--egress-part', 'a--egress-part', '--egress-part--', 'END', '-n', '#', 'Allow'])(
    'may call its user, and keep as its password, %j, whatever that means elsewhere',
    (text) => {
      const proxy = { port: 3128, allow: ['10.0.0.0/8'], auth: { username: text, passwordParameter: 'pw' } }
      const candidate = {
        type: 'ProxyRequested',
        uid: 'a',
        name: 'a',
        spec: { zone: 'lab-1', image: 'debian-12', proxy },
      }
      const request = accepted(candidate)
      expect(request === undefined).toBe(text === '#')
      if (!request) return
      const { lines, rest } = taken(ours(documents(seedOf(request, text))['vendor-data']), 'tinyproxy.conf')
      expect(lines).toContain(`BasicAuth ${text} ${text}`)
      expect(rest).toBe(plainScript)
    },
  )

  it('is the same on the disc as in its documents', () => {
    fc.assert(
      fc.property(event, (candidate) => {
        const request = accepted(candidate)
        if (!request) return
        const seed = seedOf(request, 'pw')
        const disc = readDisc(makeSeed(seed))
        expect(disc?.label).toBe('cidata')
        const files = [...(disc?.files ?? [])].map(([file, bytes]) => [file, Buffer.from(bytes).toString()])
        expect(Object.fromEntries(files)).toEqual(documents(seed))
      }),
      { numRuns: 100 },
    )
  })

  it('names and marks a VM with nothing but what was meant', async () => {
    await fc.assert(
      fc.asyncProperty(event, async (candidate) => {
        const request = accepted(candidate)
        if (!request) return
        const { uid, generation, name } = request
        const seed = `local:iso/${seedFile('test', uid, generation)}`
        const mark = { deployment: 'test', uid, generation, vmid: 5001, specHash: 'h', seed }
        const description = described(mark, name)
        expect(readMark(description)).toEqual(mark)
        expect(description.split('\n')).toHaveLength(3)
        const { provider, sent } = fakeCluster(() => ok(upid()))
        await provider.clone({
          template: { node: 'pve1', vmid: 9000 },
          vmid: 5001,
          name: vmName({ uid, name }),
          description,
          full: false,
        })
        expect(decodeForm(sent[0]?.body ?? '')).toEqual({
          newid: '5001',
          name: expect.stringMatching(/^egress-[a-z0-9-]{1,49}-[0-9a-f]{6}$/),
          description,
          full: '0',
        })
        const clone = readConfig({
          digest: 'd',
          net0: 'virtio=BC:24:11:00:00:01,bridge=x,firewall=1',
          scsi0: 'vmdata:d,size=4G',
        })
        const spec = { zone: 'z', image: 'i', size: { cores: 1, memoryMiB: 512, diskGiB: 4 } }
        const row = { spec: spec as never, mac: macOf('test', uid), seed }
        const change = changes(clone, row, { deployment: 'test', bridge: 'vmbr0', vlan: 5 })
        expect(change?.set).toMatchObject({
          ide2: `${seed},media=cdrom`,
          net0: `virtio=${row.mac.toUpperCase()},bridge=vmbr0,tag=5,firewall=1`,
          tags: 'egress;egress-test',
        })
        expect(String(change?.set.ide2).split(',')).toHaveLength(2)
      }),
      { numRuns: 300 },
    )
  })
})

describe('a value of a form, whatever it is,', () => {
  it('is at Proxmox what it was here, and takes no other with it', async () => {
    const value = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 20 }),
      fc.array(fc.constantFrom(...nasty), { maxLength: 5 }).map((list) => list.join('')),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.constantFrom('description', 'name', 'tags', 'net0'), value),
        async (set) => {
          const { provider, sent } = fakeCluster(() => ok(null))
          await provider.configure({ node: 'pve1', vmid: 101 }, { set, digest: 'd' })
          if (Object.keys(set).length === 0) return
          expect(decodeForm(sent[0]?.body ?? '')).toEqual({ ...set, digest: 'd' })
        },
      ),
      { numRuns: 500 },
    )
  })

  it('stays in its place of a path', async () => {
    await fc.assert(
      fc.asyncProperty(spiced(chars('a/.%?#', 8)), async (volume) => {
        const { provider, sent } = fakeCluster(() => ok(null))
        await provider
          .deleteVolume({ node: 'pve1', storage: 'local', volume })
          .catch((error: unknown) => expect(error).toMatchObject({ name: 'ProxmoxError', code: 'Rejected' }))
        for (const { path, query } of sent) {
          expect(path).toMatch(/^\/nodes\/pve1\/storage\/local\/content\/[^/?#;]+$/)
          expect(decodeURIComponent(path.split('/').at(-1) ?? '')).toBe(volume.toWellFormed())
          expect(query).toBe('')
        }
      }),
      { numRuns: 300 },
    )
  })
})
