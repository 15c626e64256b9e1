import { describe, expect, it } from 'vitest'
import { pickAddress, usableAddresses } from '../../lib/pick-address.ts'
import type { AgentInterface } from '../../lib/proxmox/index.ts'

const mac = '02:00:00:00:00:0a'
const nic = (name: string, of: string | undefined, ...addresses: string[]): AgentInterface => ({
  name,
  ...(of === undefined ? {} : { mac: of }),
  addresses: addresses.map((address) => ({
    address,
    family: address.includes(':') ? 'ipv6' : 'ipv4',
    prefix: 24,
  })),
})
const lo = nic('lo', '00:00:00:00:00:00', '127.0.0.1', '::1')
const docker = nic('docker0', '02:42:ac:11:00:01', '172.17.0.1')
const eth0 = (...addresses: string[]) => nic('eth0', mac, ...addresses)
const any = { ipv6: false }
const both = { ipv6: true }

describe('create: address', () => {
  it.each<[string, AgentInterface[], Parameters<typeof pickAddress>[2], string | undefined]>([
    // Report: Telmate/terraform-provider-proxmox#293
    ['the IPv4 of our NIC among others', [lo, docker, eth0('10.0.0.5', 'fe80::1')], any, '10.0.0.5'],
    ['our NIC by its MAC in whatever case', [nic('ens18', mac.toUpperCase(), '10.0.0.5')], any, '10.0.0.5'],
    // Report: bpg/terraform-provider-proxmox#164
    [
      'that of our NIC, though others have none yet',
      [nic('ens19', '02:00:00:00:00:0c'), eth0('10.0.0.5'), nic('wg0', undefined)],
      any,
      '10.0.0.5',
    ],
    ['nothing while our NIC has none', [lo, docker, eth0()], any, undefined],
    ['nothing on an interface without a MAC', [nic('tun0', undefined, '10.0.0.5')], any, undefined],
    ['nothing on another’s MAC', [nic('eth1', '02:00:00:00:00:0b', '10.0.0.5')], any, undefined],
    ['no link-local address, as of a DHCP that did not answer', [eth0('169.254.7.7')], any, undefined],
    ['no loopback address on our NIC', [eth0('127.0.0.1')], any, undefined],
    [
      'no unspecified, multicast or broadcast address',
      [eth0('0.0.0.0', '224.0.0.1', '255.255.255.255')],
      both,
      undefined,
    ],
    ['the first of two', [eth0('10.0.0.5', '10.0.0.6')], any, '10.0.0.5'],
    ['the usable one after one that is not', [eth0('169.254.7.7', '10.0.0.6')], any, '10.0.0.6'],
    ['an address of a carrier’s NAT', [eth0('100.64.0.9')], any, '100.64.0.9'],
    ['no IPv6 unless asked for', [eth0('2001:db8::5')], any, undefined],
    ['a global IPv6 when asked for', [eth0('fe80::1', '2a00::5')], both, '2a00::5'],
    ['a unique local IPv6 when asked for', [eth0('fd00::5')], both, 'fd00::5'],
    // Report: Telmate/terraform-provider-proxmox#221
    ['no link-local IPv6, with or without its zone', [eth0('fe80::1', 'fe80::1%eth0')], both, undefined],
    ['IPv4 rather than IPv6', [eth0('2a00::5', '10.0.0.5')], both, '10.0.0.5'],
    // Report: Stellatarum/docker-machine-driver-pve#67
    [
      'an address in the ranges',
      [eth0('10.0.0.5', '192.0.2.7')],
      { ipv6: false, addressRanges: ['192.0.2.0/24'] },
      '192.0.2.7',
    ],
    [
      'nothing outside the ranges',
      [eth0('10.0.0.5')],
      { ipv6: false, addressRanges: ['192.0.2.0/24', '2001:db8::/32'] },
      undefined,
    ],
    [
      'loopback where a range says so',
      [eth0('127.0.0.9')],
      { ipv6: false, addressRanges: ['127.0.0.0/8'] },
      '127.0.0.9',
    ],
    [
      'IPv6 in a range',
      [eth0('2001:db8::5')],
      { ipv6: true, addressRanges: ['10.0.0.0/8', '2001:db8::/32'] },
      '2001:db8::5',
    ],
    ['an IPv6 address in one spelling', [eth0('2A00:0:0::5')], both, '2a00::5'],
    ['nothing that is no address', [eth0('', 'x', '10.0.0')], both, undefined],
    ['nothing of no interface', [], both, undefined],
  ])('is %s', (_, interfaces, how, expected) => {
    expect(pickAddress(interfaces, mac, how)).toBe(expected)
  })

  it('tells every address that would do', () => {
    const told = [lo, docker, eth0('fe80::1', '10.0.0.5', '2a00:1450::5', '10.0.0.6')]
    expect(usableAddresses(told, mac, any)).toEqual(['10.0.0.5', '10.0.0.6'])
    expect(usableAddresses(told, mac, both)).toEqual(['10.0.0.5', '2a00:1450::5', '10.0.0.6'])
  })
})
