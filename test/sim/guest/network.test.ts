import { describe, expect, it } from 'vitest'
import type { Yaml } from '../../../sim/guest/merge.ts'
import { configureCard } from '../../../sim/guest/network.ts'

const mac = 'BC:24:11:00:00:01'

describe('sim: guest: network', () => {
  it.each<[string, Yaml | undefined, { name: string; isUp: boolean }]>([
    ['nothing', undefined, { name: 'eth0', isUp: true }],
    [
      'a MAC with DHCP',
      { version: 2, ethernets: { a: { match: { macaddress: mac.toLowerCase() }, dhcp4: true } } },
      { name: 'eth0', isUp: true },
    ],
    [
      'a new name',
      { version: 2, ethernets: { a: { match: { macaddress: mac }, 'set-name': 'ens18', dhcp4: true } } },
      { name: 'ens18', isUp: true },
    ],
    [
      'a static address',
      { version: 2, ethernets: { eth0: { addresses: ['10.0.0.5/24'] } } },
      { name: 'eth0', isUp: true },
    ],
    [
      'only IPv6',
      { version: 2, ethernets: { eth0: { dhcp6: true, addresses: ['fd00::1/64'] } } },
      { name: 'eth0', isUp: false },
    ],
    [
      'a pattern for names',
      { network: { version: 2, ethernets: { a: { match: { name: 'e*' }, dhcp4: true } } } },
      { name: 'eth0', isUp: true },
    ],
    [
      'the MAC of another card',
      { version: 2, ethernets: { a: { match: { macaddress: 'bc:24:11:00:00:02' }, dhcp4: true } } },
      { name: 'eth0', isUp: false },
    ],
    [
      'version 1 with DHCP',
      {
        version: 1,
        config: [{ type: 'physical', name: 'eth0', mac_address: mac, subnets: [{ type: 'dhcp' }] }],
      },
      { name: 'eth0', isUp: true },
    ],
    [
      'version 1 by name, static',
      {
        version: 1,
        config: [{ type: 'physical', name: 'eth0', subnets: [{ type: 'static', address: '10.0.0.5/24' }] }],
      },
      { name: 'eth0', isUp: true },
    ],
    [
      'version 1 without an address',
      { version: 1, config: [{ type: 'physical', name: 'eth0', subnets: [{ type: 'dhcp6' }] }] },
      { name: 'eth0', isUp: false },
    ],
    ['no known version', { version: 3 }, { name: 'eth0', isUp: false }],
    ['no map at all', 'dhcp', { name: 'eth0', isUp: false }],
  ])('given %s', (_, config, card) => {
    expect(configureCard(mac, config, () => {})).toEqual(card)
  })
})
