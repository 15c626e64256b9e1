import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requestBody } from '../../cli/request-body.ts'
import { loadConfig } from '../../lib/config.ts'

const config = loadConfig(new URL('../../config/local.yml', import.meta.url).pathname)
const place = { name: 'hello', zone: 'lab-1', image: 'debian-12' }

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'egress-request-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function file(text: string): string {
  const path = join(folder, 'request')
  writeFileSync(path, text)
  return path
}

describe('request-body', () => {
  it('makes the smallest request, with a uid of its own each time', () => {
    const body = requestBody(place, config)
    expect(body).toEqual({
      type: 'ProxyRequested',
      uid: expect.stringMatching(/^hello-[0-9a-f]{8}$/),
      generation: 1,
      name: 'hello',
      spec: { zone: 'lab-1', image: 'debian-12' },
    })
    expect(requestBody(place, config).uid).not.toBe(body.uid)
  })

  it('makes a uid that is one from the longest and oddest name', () => {
    const { uid } = requestBody({ ...place, name: `X${'y'.repeat(62)}` }, config)
    expect(uid).toMatch(/^xy{53}-[0-9a-f]{8}$/)
  })

  it('puts every flag where it belongs', () => {
    const flags = {
      ...place,
      uid: 'mine',
      generation: '3',
      cores: '2',
      memoryMib: '1024',
      diskGib: '8',
      port: '3128',
      allow: ['10.0.0.0/8', '2001:db8::/32'],
      username: 'bob',
      passwordParameter: '/egress/bob',
      userData: file('#cloud-config\n'),
      ttl: '3600',
      label: ['team=search', 'note=a=b'],
    }
    expect(requestBody(flags, config)).toEqual({
      type: 'ProxyRequested',
      uid: 'mine',
      generation: 3,
      name: 'hello',
      spec: {
        zone: 'lab-1',
        image: 'debian-12',
        size: { cores: 2, memoryMiB: 1024, diskGiB: 8 },
        proxy: {
          port: 3128,
          allow: ['10.0.0.0/8', '2001:db8::/32'],
          auth: { username: 'bob', passwordParameter: '/egress/bob' },
        },
        userData: '#cloud-config\n',
        ttlSeconds: 3600,
        labels: { team: 'search', note: 'a=b' },
      },
    })
  })

  it.each([
    ['YAML', 'name: hello\nspec:\n  zone: lab-1\n  image: debian-12\n  size: { cores: 4 }\n'],
    ['JSON', '{"name":"hello","spec":{"zone":"lab-1","image":"debian-12","size":{"cores":4}}}'],
  ])('reads a file of %s, flags over it', (_, text) => {
    const body = requestBody({ file: file(text), uid: 'mine', memoryMib: '256' }, config)
    expect(body).toMatchObject({
      uid: 'mine',
      spec: { zone: 'lab-1', size: { cores: 4, memoryMiB: 256 } },
    })
  })

  it.each([
    ['an unknown zone', { ...place, zone: 'lab-9' }, 'spec.zone: got "lab-9", wanted one of: lab-1'],
    ['an unknown image', { ...place, image: 'plan9' }, 'spec.image: got "plan9", wanted one of: debian-12'],
    [
      'a negative size',
      { ...place, cores: '-1' },
      'spec.size.cores: got -1, wanted a whole number of cores, 1 to 128',
    ],
    [
      'a size that is no number',
      { ...place, memoryMib: '1G' },
      'spec.size.memoryMiB: got "1G", wanted a whole number of MiB, 128 to 1048576',
    ],
    [
      'a name with an underscore',
      { ...place, name: 'a_b' },
      'name: got "a_b", wanted 1 to 63 letters, digits and inner hyphens (no underscore, no dot)',
    ],
    [
      'an empty allow',
      { ...place, allow: [''] },
      'spec.proxy.allow: got a list of 0, wanted at least one address range: an empty list would let nobody in',
    ],
    [
      'a range that is none',
      { ...place, allow: ['everywhere'] },
      'spec.proxy.allow.0: got "everywhere", wanted an address range such as 10.0.0.0/8 or 2001:db8::/32',
    ],
    [
      'half of a login',
      { ...place, username: 'bob' },
      'spec.proxy.auth.passwordParameter: got nothing, wanted ',
    ],
    ['nothing at all', {}, 'name: got nothing, wanted '],
  ])('refuses %s, with the field, what came and what was wanted', (_, flags, line) => {
    expect(() => requestBody(flags, config)).toThrow(`\n  ${line}`)
  })

  it('names every misspelt field of a file, at any depth, and everything else that is wrong at once', () => {
    const path = file('name: a_b\nspecs: {}\nspec: { zone: lab-1, image: debian-12, size: { core: 1 } }\n')
    let message = ''
    try {
      requestBody({ file: path }, config)
    } catch (error) {
      message = String(error)
    }
    expect(message).toContain('  name: got "a_b"')
    expect(message).toContain('  specs: got a field of this name, wanted no such field (is it misspelt?)')
    expect(message).toContain('  spec.size.core: got a field of this name')
  })

  it('never shows a password that stands where only its name belongs', () => {
    const path = file(
      'name: hello\nspec: { zone: lab-1, image: debian-12, proxy: { auth: { username: bob, password: hunter2 } } }\n',
    )
    expect(() => requestBody({ file: path }, config)).toThrow('spec.proxy.auth.password: got a field')
    expect(() => requestBody({ file: path }, config)).not.toThrow('hunter2')
  })

  it.each([
    ['is not there', '/no/such/file', 'cannot be read'],
    ['is no document', undefined, 'neither JSON nor YAML'],
  ])('says so when a file %s', (_, path, text) => {
    expect(() => requestBody({ file: path ?? file('{"name": "hel') }, config)).toThrow(text)
  })
})
