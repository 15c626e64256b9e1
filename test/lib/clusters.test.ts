import { describe, expect, it } from 'vitest'
import { createClusters } from '../../lib/clusters.ts'
import { connection } from '../../lib/connection.ts'
import { aConfig } from './a-config.ts'
import { aPlace, aRow } from './a-row.ts'

const invocation = { signal: new AbortController().signal, mutateUntilMs: 1 }

function open() {
  let connections = 0
  const clusters = createClusters(aConfig(), () => {
    connections += 1
    return { with: (bound) => ({ bound }) }
  })
  return { clusters, count: () => connections }
}

describe('clusters', () => {
  it('are connected once, at their first use, and bound to each invocation', () => {
    const { clusters, count } = open()
    expect(count()).toBe(0)
    const one = clusters.of(aRow(), invocation)
    const other = clusters.of(aRow({ uid: 'b' }), { ...invocation, mutateUntilMs: 2 })
    expect(count()).toBe(1)
    expect([one.vms.bound.mutateUntilMs, other.vms.bound.mutateUntilMs]).toEqual([1, 2])
    expect(one.cluster.storage).toBe('vmdata')
  })

  it('are known by the place of a row, else by its zone, else there is only one to ask', () => {
    const { clusters } = open()
    const { cluster } = clusters.of(aRow(), invocation)
    expect(clusters.of(aRow({ place: undefined }), invocation).cluster).toBe(cluster)
    expect(clusters.of(aRow({ place: undefined, spec: undefined }), invocation).cluster).toBe(cluster)
  })

  it('that are not configured any more are for a person', () => {
    const { clusters } = open()
    const lost = aRow({ place: { ...aPlace, cluster: 'old' } })
    expect(() => clusters.of(lost, invocation)).toThrow(
      expect.objectContaining({ code: 'Misconfigured', class: 'permanent' }),
    )
    expect(clusters.named('old', invocation)).toBeUndefined()
  })

  it.each(['constructor', '__proto__'])('do not include %s, though every object does', (name) => {
    const { clusters, count } = open()
    expect(clusters.named(name, invocation)).toBeUndefined()
    const orphan = aRow({ place: { ...aPlace, cluster: name } })
    expect(() => clusters.of(orphan, invocation)).toThrow(expect.objectContaining({ code: 'Misconfigured' }))
    expect(count()).toBe(0)
  })
})

describe('connection', () => {
  const cluster = aConfig().clusters.lab
  if (!cluster) throw new Error('the small configuration has a cluster')

  it('hands on endpoints with what verifies them, and nothing undefined', () => {
    const { endpoints } = connection(cluster, { read: async () => 'x', parameter: async () => undefined })
    expect([...endpoints].sort((a, b) => (a.url < b.url ? -1 : 1))).toEqual(cluster.endpoints)
    const { endpoints: bare } = connection(
      { ...cluster, endpoints: [{ url: 'https://a:8006', node: undefined, fingerprint: undefined }] },
      { read: async () => 'x', parameter: async () => undefined },
    )
    expect(Object.keys(bare[0] ?? {})).toEqual(['url'])
  })

  // Report: dougiteixeira/proxmoxve#692
  it('begins at another endpoint in each process, so that all of them share what concerns no node', () => {
    const three = { ...cluster, endpoints: ['a', 'b', 'c'].map((name) => ({ url: `https://${name}:8006` })) }
    const order = (chance: number) =>
      connection(
        three as typeof cluster,
        { read: async () => 'x', parameter: async () => undefined },
        () => chance,
      )
        .endpoints.map(({ url }) => url[8])
        .join('')
    expect([0, 0.34, 0.99].map(order)).toEqual(['abc', 'bca', 'cab'])
  })

  // Report: k8s-proxmox/cluster-api-provider-proxmox#109
  it('hands on how long a call may take, where the configuration says so', () => {
    const secrets = { read: async () => 'x', parameter: async () => undefined }
    expect(connection(cluster, secrets)).not.toHaveProperty('timeouts')
    const patient = { ...cluster, callSeconds: { read: 40, agent: undefined } }
    expect(connection(patient, secrets).timeouts).toEqual({ readMs: 40_000 })
  })

  it('reads the tokens when asked, in their order, freshly when asked to, and leaves out what is not there', async () => {
    const asked: unknown[] = []
    const { token } = connection(
      { ...cluster, token: [{ ssm: '/one' }, { file: '/two' }, { ssm: '/three' }] },
      {
        async read(source, options) {
          asked.push([source, options])
          return 'ssm' in source ? (source.ssm === '/one' ? 'first' : '') : undefined
        },
        parameter: async () => undefined,
      },
    )
    expect(asked).toEqual([])
    expect(await token.get({ fresh: true })).toEqual(['first'])
    expect(asked).toEqual([
      [{ ssm: '/one' }, { fresh: true }],
      [{ file: '/two' }, { fresh: true }],
      [{ ssm: '/three' }, { fresh: true }],
    ])
  })

  it('says at once that the CA is not there', () => {
    expect(() =>
      connection(
        { ...cluster, caFile: '/nowhere/ca.pem' },
        { read: async () => 'x', parameter: async () => undefined },
      ),
    ).toThrow(/ENOENT.*ca\.pem/)
  })
})
