import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { guestImage, imageFolder, NoGuestImage } from '../../../sim/qemu/image.ts'
import { reachable } from '../../../sim/qemu/interfaces.ts'

afterEach(() => vi.unstubAllEnvs())

it('without QEMU it is said what to install', async () => {
  const nothing = mkdtempSync(join(tmpdir(), 'egress-no-qemu-'))
  vi.stubEnv('PATH', nothing)
  const failure = await guestImage().catch((error: unknown) => error)
  rmSync(nothing, { recursive: true })
  expect(failure).toBeInstanceOf(NoGuestImage)
  expect(String(failure)).toContain(
    'apt-get install --no-install-recommends qemu-system-x86 qemu-utils util-linux',
  )
})

it('the image lies in the cache folder of the user, by its recipe', () => {
  expect(imageFolder({ XDG_CACHE_HOME: '/cache' })).toMatch(/^\/cache\/egress-proxies\/guest\/[0-9a-f]{12}$/)
})

it('an address that nothing but QEMU can reach is told as the one that is forwarded', () => {
  const addresses = (own: string) => [
    { 'ip-address': own, 'ip-address-type': 'ipv4' as const, prefix: 24 },
    { 'ip-address': 'fe80::1', 'ip-address-type': 'ipv6' as const, prefix: 64 },
  ]
  const told = reachable(
    [{ name: 'lo' }, { name: 'eth0', 'ip-addresses': addresses('10.0.2.15') }],
    '127.3.2.1',
  )
  expect(told[1]?.['ip-addresses']).toEqual([
    { 'ip-address': '127.3.2.1', 'ip-address-type': 'ipv4', prefix: 8 },
    { 'ip-address': 'fe80::1', 'ip-address-type': 'ipv6', prefix: 64 },
  ])
  expect(told[0]).toEqual({ name: 'lo' })
})
