import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { documents, SeedError } from '../../../lib/nocloud/index.ts'
import { aSeed, thrownBy } from './a-seed.ts'

const yaml = (text: string) => parse(text, { version: '1.1' })

describe('meta-data', () => {
  it('names the instance and the host', () => {
    expect(yaml(documents(aSeed())['meta-data'])).toEqual({
      'instance-id': '0190f5c2-8f7e-7cc1-9b7e-2d1f6a0c4e11-g1',
      'local-hostname': 'egress-crawler-3f9a1c',
    })
  })

  it.each(['yes', 'null', '1e3', '0x1f', '012', '2020-01-01', '10.5', 'a.b-c'])(
    'keeps %s a string',
    (name) => {
      expect(yaml(documents(aSeed({ hostname: name }))['meta-data'])['local-hostname']).toBe(name)
    },
  )

  it.each(['', '-a', 'a-', 'a_b', 'a..b', 'ä', 'a b', 'a\nb: c', 'a'.repeat(64), 'a.'.repeat(127) + 'a'])(
    'refuses the host name %j',
    (hostname) => {
      expect(thrownBy(() => documents(aSeed({ hostname })))).toMatchObject({
        code: 'InvalidHostname',
        field: 'hostname',
      })
    },
  )

  it.each(['', '../x', 'a/b', '.', 'a\n', '{}'])(
    'refuses the instance id %j, which becomes a directory',
    (id) => {
      expect(thrownBy(() => documents(aSeed({ instanceId: id })))).toMatchObject({
        code: 'InvalidInstanceId',
      })
    },
  )
})

describe('network-config', () => {
  // Report: Telmate/terraform-provider-proxmox#477
  // Report: projectcalico/felix#233
  it('finds the card by its MAC and asks for an address', () => {
    expect(yaml(documents(aSeed())['network-config'])).toEqual({
      version: 2,
      ethernets: {
        eth0: {
          match: { macaddress: '02:ab:cd:00:01:02' },
          'set-name': 'eth0',
          dhcp4: true,
          'dhcp-identifier': 'mac',
        },
      },
    })
  })

  it('asks for IPv6 addresses when told to', () => {
    expect(yaml(documents(aSeed({ ipv6: true }))['network-config']).ethernets.eth0).toMatchObject({
      dhcp4: true,
      dhcp6: true,
      'accept-ra': true,
    })
  })

  it.each([
    '',
    '02:00',
    '03:00:00:00:00:00',
    '02-00-00-00-00-00',
    '02:00:00:00:00:0g',
    '02:00:00:00:00:00\n',
  ])('refuses the MAC %j', (mac) => {
    expect(thrownBy(() => documents(aSeed({ mac })))).toMatchObject({ code: 'InvalidMac', field: 'mac' })
  })
})

describe('any strings at all', () => {
  it('are read back as they are, or refused with the field named', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string(),
      fc.stringMatching(/^[a-z0-9:.-]{1,20}$/),
    )
    fc.assert(
      fc.property(texts, texts, texts, (instanceId, hostname, mac) => {
        const seed = aSeed({ instanceId, hostname, mac })
        try {
          const { 'meta-data': meta, 'network-config': network } = documents(seed)
          expect(yaml(meta)).toEqual({ 'instance-id': instanceId, 'local-hostname': hostname })
          expect(yaml(network).ethernets.eth0.match).toEqual({ macaddress: mac.toLowerCase() })
        } catch (error) {
          if (!(error instanceof SeedError)) throw error
          expect(['instanceId', 'hostname', 'mac']).toContain(error.field)
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('never start a new line in an error', () => {
    const error = thrownBy(() => documents(aSeed({ hostname: 'x\nlevel=fatal' + 'y'.repeat(999) })))
    expect(error).toBeInstanceOf(SeedError)
    expect(String(error)).not.toContain('\n')
    expect(String(error).length).toBeLessThan(300)
  })
})
