import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { ConfigError, loadConfig, parseConfig } from '../../lib/config.ts'
import { aConfig, aDocument } from './a-config.ts'

type Document = ReturnType<typeof aDocument>

/** The complaints about the small configuration once `spoil` has been at it. */
function complaints(spoil: (document: Document & Record<string, unknown>) => void): string[] {
  const document = structuredClone(aDocument())
  spoil(document)
  return linesOf(stringify(document))
}

function linesOf(text: string): string[] {
  try {
    parseConfig(text, 'prod.yml')
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const [title, ...lines] = error.message.split('\n')
    expect(title).toBe('prod.yml is not a usable configuration:')
    expect(lines).toHaveLength(error.complaints.length)
    return lines.map((line) => line.trim())
  }
  throw new Error('expected the configuration to be refused')
}

const spoilt = (part: object, changes: object) => Object.assign(part, changes)

describe('configuration', () => {
  it.each(['local', 'example'])('takes config/%s.yml', (name) => {
    const config = loadConfig(new URL(`../../config/${name}.yml`, import.meta.url).pathname)
    expect(config.deployment).toMatch(/^[a-z]+$/)
  })

  it('fills in what is left out', () => {
    expect(aConfig({ timings: undefined, parameters: undefined })).toMatchObject({
      placement: 'hash',
      limits: { clonesPerStorage: 2, maxDeletions: 20 },
      verify: { probe: 'http', probeFrom: [] },
      parameters: { ssm: true },
      timings: {
        functionTimeoutSeconds: 60,
        maxClockSkewSeconds: 120,
        settleSeconds: 120,
        tombstoneDays: 35,
      },
      clusters: { lab: { clone: 'linked', ipv6: false, storageShared: false, isoStorageShared: false } },
    })
  })

  it('finds the files it names beside itself', () => {
    const config = aConfig()
    expect(config.clusters.lab?.token).toEqual([{ file: '/etc/egress/token' }])
    expect(config.parameters).toEqual({ file: '/etc/egress/parameters.yml' })
    const { clusters } = aDocument()
    const withCa = aConfig({
      clusters: {
        lab: { ...clusters.lab, caFile: 'ca/pve.pem', token: [{ ssm: '/a' }, { file: '/run/b' }] },
      },
    })
    expect(withCa.clusters.lab).toMatchObject({
      caFile: '/etc/egress/ca/pve.pem',
      token: [{ ssm: '/a' }, { file: '/run/b' }],
    })
  })

  it('names everything that is wrong at once, by its path', () => {
    const lines = complaints((document) => {
      spoilt(document, { deployment: 'my-lab', placment: 'hash' })
      spoilt(document.clusters.lab, { bridge: 'a bridge', vmids: { from: 9, to: 5 }, isoStorage: undefined })
      spoilt(document.clusters.lab.endpoints[0] ?? {}, { fingerprint: undefined })
      spoilt(document.zones['lab-1'], { cluster: 'lap' })
      spoilt(document.defaults.size, { cores: 0, diskGiB: '4' })
      spoilt(document.defaults.proxy, { allow: [] })
      spoilt(document.timings, { tombstoneDays: 7 })
    })
    expect(lines.sort()).toEqual([
      'clusters.lab.bridge: got "a bridge", wanted the name of a bridge or vnet',
      'clusters.lab.isoStorage: got nothing, wanted a string',
      'clusters.lab.vmids.from: got 9, wanted a VMID, 100 to 999999999',
      'clusters.lab.vmids.to: got 5, wanted a VMID, 100 to 999999999',
      'clusters.lab.vmids: got an object, wanted `from` not above `to`',
      'clusters.lab: got an object, wanted caFile, or a fingerprint on every endpoint: certificates are always verified',
      'defaults.proxy.allow: got a list of 0, wanted at least one address range: an empty list would let nobody in',
      'defaults.size.cores: got 0, wanted a whole number of cores, 1 to 128',
      'defaults.size.diskGiB: got "4", wanted a whole number of GiB, 1 to 65536',
      'deployment: got "my-lab", wanted 1 to 20 of a-z 0-9, a letter first',
      'placment: got a field of this name, wanted no such field (is it misspelt?)',
      'timings.tombstoneDays: got 7, wanted at least 35 days: longer than source and dead-letter retention together',
      'zones.lab-1.cluster: got "lap", wanted one of: lab',
    ])
  })

  it.each<[string, (document: Document & Record<string, unknown>) => void, string]>([
    [
      'a zone on a node without a template',
      ({ zones }) => spoilt(zones['lab-1'], { nodes: ['pve1', 'pve9'] }),
      'zones.lab-1.nodes.1: got "pve9", wanted a node with a template in clusters.lab.images: pve1, pve2',
    ],
    [
      'a zone without nodes',
      ({ zones }) => spoilt(zones['lab-1'], { nodes: [] }),
      'zones.lab-1.nodes: got a list of 0, wanted at least one node',
    ],
    // Report: UrielCh/proxmox-api#15
    [
      'an endpoint that nothing verifies',
      ({ clusters }) => spoilt(clusters.lab.endpoints[1] ?? {}, { fingerprint: undefined }),
      'clusters.lab: got an object, wanted caFile, or a fingerprint on every endpoint: certificates are always verified',
    ],
    [
      'a plain address',
      ({ clusters }) => spoilt(clusters.lab.endpoints[0] ?? {}, { url: 'http://pve1:8006' }),
      'clusters.lab.endpoints.0.url: got "http://pve1:8006", wanted an https:// address such as https://pve1.lan:8006',
    ],
    [
      'a short fingerprint',
      ({ clusters }) => spoilt(clusters.lab.endpoints[0] ?? {}, { fingerprint: 'AA:BB' }),
      'clusters.lab.endpoints.0.fingerprint: got "AA:BB", wanted a SHA-256 fingerprint, 32 pairs AA:BB:…',
    ],
    [
      'a range that ends before it begins',
      ({ clusters }) => spoilt(clusters.lab.vmids, { from: 900, to: 200 }),
      'clusters.lab.vmids: got an object, wanted `from` not above `to`',
    ],
    [
      'three tokens',
      ({ clusters }) => spoilt(clusters.lab, { token: [{ ssm: 'a' }, { ssm: 'b' }, { ssm: 'c' }] }),
      'clusters.lab.token: got a list of 3, wanted one source of the API token, or two',
    ],
    [
      'a token as text, which is not shown',
      ({ clusters }) => spoilt(clusters.lab, { token: 'egress@pve!ctl=hunter2' }),
      'clusters.lab.token: got a string (not shown), wanted one source of the API token, or two',
    ],
    // Report: hashicorp/packer-plugin-proxmox#197
    [
      'a storage without a name',
      ({ clusters }) => spoilt(clusters.lab, { isoStorage: '' }),
      'clusters.lab.isoStorage: got "", wanted a storage id',
    ],
    [
      'a deadline for a step that does not exist',
      ({ timings }) => spoilt(timings, { deadlineSeconds: { cloning: 7200 } }),
      'timings.deadlineSeconds.cloning: got a field of this name, wanted no such field (is it misspelt?)',
    ],
    [
      'a call that is cut before pveproxy gives it up itself',
      ({ clusters }) => spoilt(clusters.lab, { callSeconds: { change: 10 } }),
      'clusters.lab.callSeconds.change: got 10, wanted 31 or more: pveproxy itself gives up after 30 s',
    ],
    [
      'a window for a code that does not exist',
      ({ timings }) => spoilt(timings, { retryWindowSeconds: { NoSpaces: 1 } }),
      'timings.retryWindowSeconds.NoSpaces: got a field of this name, wanted no such field (is it misspelt?)',
    ],
  ])('refuses %s', (_, spoil, line) => {
    expect(complaints(spoil)).toEqual([line])
  })

  it.each([
    ['a: [', 'YAML'],
    ['', 'an object'],
    ['just text', 'an object'],
  ])('refuses the document %j', (text, wanted) => {
    const lines = linesOf(text)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/^\(document\): got /)
    expect(lines[0]).toMatch(new RegExp(`wanted ${wanted}$`))
  })

  it('says that its file is not there in the system’s words', () => {
    expect(() => loadConfig('/nowhere/egress.yml')).toThrow(/ENOENT.*\/nowhere\/egress\.yml/)
  })
})
