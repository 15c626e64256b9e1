import { describe, expect, it } from 'vitest'
import { checkRequest, clusterOf, fullSpec, passwordPrefix, templatesOf } from '../../lib/wish.ts'
import { aConfig, aDocument } from './a-config.ts'
import { aFullSpec, aSpec } from './a-row.ts'

const config = aConfig()

describe('wish: what this installation has', () => {
  it('is content with a zone and an image that are there', () => {
    expect(checkRequest({ spec: aSpec }, config)).toEqual([])
  })

  it('refuses a password that lies where other secrets do', () => {
    const named = (passwordParameter: string) => ({
      spec: { ...aSpec, proxy: { auth: { username: 'a', passwordParameter } } },
    })
    const onAws = aConfig({ parameters: { ssm: true } })
    const prefix = passwordPrefix(onAws.deployment)
    for (const name of ['/egress/proxmox/token', `${prefix.slice(0, -1)}-x`, 'team-a', `/x${prefix}y`]) {
      expect(checkRequest(named(name), onAws)).toEqual([
        {
          path: 'spec.proxy.auth.passwordParameter',
          got: `"${name}"`,
          wanted: `a parameter below ${prefix}`,
        },
      ])
    }
    expect(checkRequest(named(`${prefix}team-a`), onAws)).toEqual([])
    expect(checkRequest(named('team-a'), aConfig({ parameters: { file: 'parameters.yml' } }))).toEqual([])
  })

  it('names the zones it has', () => {
    expect(checkRequest({ spec: { ...aSpec, zone: 'lab-9' } }, config)).toEqual([
      { path: 'spec.zone', got: '"lab-9"', wanted: 'one of: lab-1, lab-2' },
    ])
  })

  it('names the images that a node of the zone has a template of', () => {
    expect(checkRequest({ spec: { zone: 'lab-2', image: 'ubuntu-24.04' } }, config)).toEqual([
      { path: 'spec.image', got: '"ubuntu-24.04"', wanted: 'one of: debian-12' },
    ])
    expect(checkRequest({ spec: { zone: 'lab-1', image: 'ubuntu-24.04' } }, config)).toEqual([])
  })

  it.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])(
    'has no zone and no image called %s, though every object does',
    (name) => {
      expect(checkRequest({ spec: { ...aSpec, zone: name } }, config)).toEqual([
        { path: 'spec.zone', got: `"${name}"`, wanted: 'one of: lab-1, lab-2' },
      ])
      expect(checkRequest({ spec: { ...aSpec, image: name } }, config)).toMatchObject([
        { path: 'spec.image' },
      ])
    },
  )

  it('says so where there is no image at all', () => {
    const { clusters, zones } = aDocument()
    const bare = aConfig({
      clusters: { lab: { ...clusters.lab, images: { 'debian-12': { pve2: 9001 } } } },
      zones: {
        ...zones,
        'lab-1': { cluster: 'lab', nodes: ['pve2'] },
        'lab-2': { cluster: 'lab', nodes: ['pve2'] },
      },
    })
    // A configuration may change under requests that are on their way.
    bare.zones['lab-1'] = { cluster: 'lab', nodes: ['pve1'] }
    expect(checkRequest({ spec: aSpec }, bare)).toEqual([
      { path: 'spec.image', got: '"debian-12"', wanted: 'one of: (none is configured)' },
    ])
  })

  it('finds the templates of an image, node by node of the zone', () => {
    const zone = { cluster: 'lab', nodes: ['pve2', 'pve1'] }
    expect(templatesOf(zone, 'debian-12', config)).toEqual([
      { node: 'pve2', vmid: 9001 },
      { node: 'pve1', vmid: 9000 },
    ])
    expect(templatesOf(zone, 'ubuntu-24.04', config)).toEqual([{ node: 'pve2', vmid: 9101 }])
    expect(templatesOf(zone, 'none', config)).toEqual([])
    expect(() => clusterOf({ cluster: 'gone', nodes: [] }, config)).toThrow('unknown cluster gone')
  })
})

describe('wish: defaults', () => {
  const document = aDocument()
  const auth = { username: 'ci', passwordParameter: '/ci' }

  it('fill in everything but zone and image', () => {
    expect(fullSpec(aSpec, config)).toEqual(aFullSpec)
  })

  it('yield to what was asked for, field by field', () => {
    const spec = {
      ...aSpec,
      size: { cores: 4 },
      proxy: { allow: ['192.0.2.0/24'], auth },
      ttlSeconds: 600,
      userData: 'x',
    }
    expect(fullSpec(spec, config)).toEqual({
      ...aFullSpec,
      size: { cores: 4, memoryMiB: 512, diskGiB: 4 },
      proxy: { protocol: 'http', port: 3128, allow: ['192.0.2.0/24'], auth },
      ttlSeconds: 600,
      hasUserData: true,
    })
  })

  it('may bring credentials, a life time and labels of their own', () => {
    const rich = aConfig({
      defaults: {
        ...document.defaults,
        proxy: { ...document.defaults.proxy, auth },
        ttlSeconds: 3600,
        labels: { team: 'a', stage: 'x' },
      },
    })
    expect(fullSpec({ ...aSpec, labels: { team: 'b' } }, rich)).toEqual({
      ...aFullSpec,
      proxy: { ...aFullSpec.proxy, auth },
      ttlSeconds: 3600,
      labels: { team: 'b', stage: 'x' },
    })
  })
})
