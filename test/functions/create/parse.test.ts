import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keyOf } from '../../../functions/create/event.ts'
import { parse } from '../../../functions/create/parse.ts'
import { InvalidEvent } from '../../../lib/events.ts'
import { aConfig } from '../../lib/a-config.ts'

const config = aConfig()
const spec = { zone: 'lab-1', image: 'debian-12' }
const request = { type: 'ProxyRequested', uid: 'a', name: 'alpha', spec }

const read = (event: unknown) => parse(JSON.stringify(event), config)

function complaints(event: unknown): string[] {
  try {
    read(event)
  } catch (error) {
    if (!(error instanceof InvalidEvent)) throw error
    return error.complaints.map(({ path, got, wanted }) => `${path}: got ${got}, wanted ${wanted}`)
  }
  throw new Error('expected a refusal')
}

describe('create: request', () => {
  it('needs a uid, a name, a zone and an image, and is the first generation unless it says otherwise', () => {
    expect(read(request)).toEqual({ ...request, generation: 1 })
    expect(keyOf({ ...request, type: 'ProxyRequested', generation: 1 })).toBe('a')
  })

  it('may say all there is to say', () => {
    const whole = {
      ...request,
      generation: 7,
      spec: {
        ...spec,
        size: { cores: 2, memoryMiB: 1024, diskGiB: 8 },
        proxy: {
          protocol: 'http',
          port: 8080,
          allow: ['10.0.0.0/8', '2001:db8::/32'],
          auth: { username: 'ci', passwordParameter: '/ci/password' },
        },
        userData: '#cloud-config\n',
        ttlSeconds: 3600,
        labels: { team: 'data' },
      },
    }
    expect(read(whole)).toEqual(whole)
  })

  it.each<[string, object, string]>([
    [
      'an unknown zone',
      { spec: { ...spec, zone: 'moon' } },
      'spec.zone: got "moon", wanted one of: lab-1, lab-2',
    ],
    [
      'an image that the zone does not have',
      { spec: { zone: 'lab-2', image: 'ubuntu-24.04' } },
      'spec.image: got "ubuntu-24.04", wanted one of: debian-12',
    ],
    [
      'a negative size',
      { spec: { ...spec, size: { diskGiB: -4 } } },
      'spec.size.diskGiB: got -4, wanted a whole number of GiB, 1 to 65536',
    ],
    [
      'half a core',
      { spec: { ...spec, size: { cores: 0.5 } } },
      'spec.size.cores: got 0.5, wanted a whole number of cores, 1 to 128',
    ],
    [
      'a misspelt field',
      { spec: { ...spec, sise: {} } },
      'spec.sise: got a field of this name, wanted no such field (is it misspelt?)',
    ],
    [
      'a misspelt field at the top',
      { generatoin: 2 },
      'generatoin: got a field of this name, wanted no such field (is it misspelt?)',
    ],
    [
      'a name with an underscore',
      { name: 'my_proxy' },
      'name: got "my_proxy", wanted 1 to 63 letters, digits and inner hyphens (no underscore, no dot)',
    ],
    [
      'an empty allow',
      { spec: { ...spec, proxy: { allow: [] } } },
      'spec.proxy.allow: got a list of 0, wanted at least one address range: an empty list would let nobody in',
    ],
    [
      'an address for a range',
      { spec: { ...spec, proxy: { allow: ['10.1.2.3'] } } },
      'spec.proxy.allow.0: got "10.1.2.3", wanted an address range such as 10.0.0.0/8 or 2001:db8::/32',
    ],
    [
      'another protocol',
      { spec: { ...spec, proxy: { protocol: 'socks5' } } },
      'spec.proxy.protocol: got "socks5", wanted http',
    ],
    [
      'a port beyond the last',
      { spec: { ...spec, proxy: { port: 65_536 } } },
      'spec.proxy.port: got 65536, wanted a port, 1 to 65535',
    ],
    [
      'a uid in capitals',
      { uid: 'A' },
      'uid: got "A", wanted 1 to 63 of a-z 0-9 . _ - and a letter or digit first',
    ],
    [
      'a uid that is a path',
      { uid: '../x' },
      'uid: got "../x", wanted 1 to 63 of a-z 0-9 . _ - and a letter or digit first',
    ],
    [
      'a uid of the tables',
      { uid: 'userdata#a' },
      'uid: got "userdata#a", wanted 1 to 63 of a-z 0-9 . _ - and a letter or digit first',
    ],
    ['generation nought', { generation: 0 }, 'generation: got 0, wanted a whole number, 1 or more'],
    ['a generation as text', { generation: '2' }, 'generation: got "2", wanted a whole number, 1 or more'],
    [
      'too short a life',
      { spec: { ...spec, ttlSeconds: 1 } },
      'spec.ttlSeconds: got 1, wanted a whole number of seconds, 60 to 315360000',
    ],
    [
      'a password instead of the name of one',
      { spec: { ...spec, proxy: { auth: { username: 'ci', password: 'hunter2' } } } },
      'spec.proxy.auth.passwordParameter: got nothing, wanted a string',
    ],
    [
      'too much userData, which is not shown',
      { spec: { ...spec, userData: 'é'.repeat(8193) } },
      'spec.userData: got a string (not shown), wanted at most 16384 bytes of UTF-8',
    ],
    [
      'userData of no kind that a guest knows',
      { spec: { ...spec, userData: 'hello' } },
      'spec.userData: got text (not shown), wanted a text that starts with #cloud-config, #cloud-config-archive, #!, #cloud-boothook, #include, ## template: jinja, a MIME multipart header',
    ],
    [
      'a range that the proxy program would misread',
      { spec: { ...spec, proxy: { allow: ['10.0.0.0/8', '::/0'] } } },
      'spec.proxy.allow.1: got "::/0", wanted IPv6 without ::ffff:0:0/96, which is all of IPv4; 2000::/3 is the public internet',
    ],
    [
      'an event of the other queue',
      { type: 'ProxyDeletionRequested' },
      'type: got "ProxyDeletionRequested", wanted ProxyRequested or Continue or Resume',
    ],
  ])('is refused with %s', (_, changes, complaint) => {
    expect(complaints({ ...request, ...changes })[0]).toBe(complaint)
  })

  it('hears of everything that is wrong at once', () => {
    const lines = complaints({
      ...request,
      name: 'a.b',
      spec: { ...spec, size: { cores: 0 }, proxy: { port: 0, allow: [] }, foo: 1 },
    })
    expect(lines.map((line) => line.split(':')[0])).toEqual([
      'name',
      'spec.size.cores',
      'spec.proxy.port',
      'spec.proxy.allow',
      'spec.foo',
    ])
  })

  it('takes userData up to its last byte', () => {
    const userData = `#cloud-config\n#${'é'.repeat(8184)}\n`
    expect(read({ ...request, spec: { ...spec, userData } })).toMatchObject({ spec: { userData } })
  })

  it('never has its secrets repeated', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9 ]{12,40}$/), fc.boolean(), (canary, deep) => {
        const auth = deep ? { username: `${canary}!`, passwordParameter: `${canary}!` } : `${canary}!`
        const lines = complaints({ ...request, spec: { ...spec, userData: [canary], proxy: { auth } } })
        expect(lines.join()).not.toContain(canary)
      }),
    )
  })

  it('is read or refused, whatever it says', () => {
    const hostile = fc.record(
      {
        type: fc.constant('ProxyRequested'),
        uid: fc.oneof(fc.constant('a'), fc.jsonValue()),
        generation: fc.oneof(fc.constant(1), fc.jsonValue()),
        name: fc.oneof(fc.constant('a'), fc.jsonValue()),
        spec: fc.oneof(
          fc.jsonValue(),
          fc.dictionary(
            fc.constantFrom('zone', 'image', 'size', 'proxy', 'labels', '__proto__'),
            fc.oneof(fc.constantFrom('lab-1', 'constructor', '__proto__'), fc.jsonValue()),
          ),
        ),
      },
      { requiredKeys: ['type'] },
    )
    fc.assert(
      fc.property(hostile, (event) => {
        try {
          expect(read(event).type).toBe('ProxyRequested')
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidEvent)
        }
      }),
      { numRuns: 500 },
    )
  })
})
