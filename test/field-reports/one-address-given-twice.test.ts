import { afterEach, describe, expect, it } from 'vitest'
import type { CheckLab, CheckOptions } from '../functions/check/check-lab.ts'
import { found, openCheckLab } from '../functions/check/check-lab.ts'
import { atStep, settled } from '../lab/lab.ts'

let lab: CheckLab
const open = async (options: CheckOptions = {}) => {
  lab = await openCheckLab(options)
}
afterEach(() => lab?.close())

const ELSEWHERE = '127.9.9.9'

const rowOf = (uid: string) => {
  const row = lab.row(uid)
  if (!row) throw new Error(`there is no row ${uid}`)
  return row
}

/** The guest of this proxy's VM says that it is at this address, and has its proxy there. */
function guestSays(uid: string, address: string): void {
  const { place, mac } = rowOf(uid)
  const card = {
    name: 'eth0',
    'hardware-address': mac,
    'ip-addresses': [{ 'ip-address': address, 'ip-address-type': 'ipv4', prefix: 24 }],
  }
  lab.sim.faults.add({
    match: { method: 'GET', path: `/qemu/${place?.vmid}/agent/` },
    effect: { kind: 'answer', answer: { status: 200, data: { result: [card] } } },
  })
}

/** Wherever a guest says that it is, a proxy answers. */
const answering: CheckOptions['interpose'] = ({ surroundings, exchange }) => ({
  surroundings: {
    ...surroundings,
    probe: { ...surroundings.probe, http: async () => ({ kind: 'answers', detail: '' }) },
  },
  exchange,
})

describe('two guests with one address', () => {
  // Clones of a template that was started share a machine-id, and a DHCP server may go by that.
  // Report: Telmate/terraform-provider-proxmox#477
  // Report: rhoat/ansibleRole-proxmox-templates#1
  // Report: ionos-cloud/cluster-api-provider-proxmox#763
  it('are not both told of: the second fails, naming the first, which stays as it is', async () => {
    await open({ interpose: answering })
    lab.request('alpha')
    const { address = '' } = await settled(lab, 'alpha')
    lab.request('beta')
    await atStep(lab, 'beta', 'address')
    guestSays('beta', address)
    const failed = await settled(lab, 'beta')
    expect(failed).toMatchObject({
      phase: 'Failed',
      failedStep: 'address',
      problem: {
        code: 'AddressTaken',
        reason: expect.stringContaining(`${address}, which is that of the proxy alpha`),
      },
    })
    expect(failed.problem?.hint).toContain('machine-id')
    expect(lab.outcomes.filter(({ type }) => type === 'ProxyReady').map(({ uid }) => uid)).toEqual(['alpha'])
    expect(rowOf('alpha')).toMatchObject({ phase: 'Ready', address })

    lab.remove('beta')
    await settled(lab, 'beta')
    lab.remove('alpha')
    await lab.run()
    expect(lab.claims.all()).toEqual([])
  })

  // Report: ionos-cloud/cluster-api-provider-proxmox#16
  it('are never both told of, though both ask at the same moment', async () => {
    await open({ interpose: answering })
    const uids = ['alpha', 'beta', 'gamma']
    for (const uid of uids) lab.request(uid)
    await lab.run(() => uids.every((uid) => lab.row(uid)?.mac !== undefined))
    for (const uid of uids) guestSays(uid, ELSEWHERE)
    await lab.run()
    expect(uids.map((uid) => rowOf(uid).phase).sort()).toEqual(['Failed', 'Failed', 'Ready'])
    expect(lab.outcomes.filter(({ type }) => type === 'ProxyReady')).toHaveLength(1)
  })

  it('are two again once check saw that the lease went from one to the other', async () => {
    await open({ interpose: answering })
    lab.request('alpha')
    const { address = '' } = await settled(lab, 'alpha')
    guestSays('alpha', ELSEWHERE)
    lab.request('beta')
    await atStep(lab, 'beta', 'address')
    guestSays('beta', address)
    await lab.run(() => rowOf('beta').address === address)
    expect(rowOf('beta').phase).toBe('Provisioning')
    // The proxy that answers at alpha's old address is beta's, so its guest is asked.
    expect(found(await lab.round(), 'AddressChanged').map(({ where }) => where)).toEqual(['alpha'])
    await lab.run()
    expect(rowOf('alpha')).toMatchObject({ phase: 'Ready', address: ELSEWHERE })
    expect(rowOf('beta')).toMatchObject({ phase: 'Ready', address })
    expect(lab.queues.deadLetters).toEqual([])
  })
})
