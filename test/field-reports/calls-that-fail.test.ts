import { afterEach, describe, expect, it } from 'vitest'
import { defaultWorld, type FaultRule } from '../../sim/index.ts'
import { deadLetterCodes, expectDeletable } from '../functions/adversity.ts'
import { byHand } from '../lab/by-hand.ts'
import { atStep, type Lab, openLab, settled } from '../lab/lab.ts'

let lab: Lab
afterEach(() => lab?.close())

const HOUR_MS = 3600_000

/** A life with this rule in its way, for so long, ends well, and the rule was met. */
async function livesThrough(rule: FaultRule, forMs = Number.POSITIVE_INFINITY): Promise<void> {
  lab = await openLab()
  const id = lab.sim.faults.add(rule)
  const struck = () => lab.sim.faults.list().find((one) => one.id === id)?.struck
  let met = 0
  if (forMs !== Number.POSITIVE_INFINITY) {
    lab.clock.after(forMs, () => {
      met = struck() ?? 0
      lab.sim.faults.remove(id)
    })
  }
  lab.request('alpha')
  expect((await settled(lab, 'alpha')).phase).toBe('Ready')
  expect(struck() ?? met).toBeGreaterThan(0)
  expect(deadLetterCodes(lab)).toEqual([])
  await expectDeletable(lab, 'alpha')
}

describe('the lock file of a VM that another task holds', () => {
  const message = "can't lock file '/var/lock/qemu-server/lock-5917.conf' - got timeout"
  // Report: bpg/terraform-provider-proxmox#995
  it.each([
    ['PUT', '/config$'],
    ['PUT', '/resize$'],
    ['POST', '/status/start$'],
  ])('is waited for at %s …%s', async (method, path) => {
    // Longer than what nobody knows the meaning of is tried again.
    await livesThrough(
      { match: { method, path }, effect: { kind: 'answer', answer: { status: 500, message } } },
      30 * 60_000,
    )
  })
})

describe('an upload', () => {
  // Report: ionos-cloud/cluster-api-provider-proxmox#569
  // Report: kubernetes-sigs/cluster-api#12874
  it('whose connection is cut, or whose file was gone when the task came to it, is sent again', async () => {
    await livesThrough({
      match: { method: 'POST', path: '/upload$' },
      times: 2,
      effect: { kind: 'connection', code: 'UND_ERR_SOCKET', sent: true },
    })
    await lab.close()
    const exitText =
      "command '/usr/bin/scp -p -- /var/tmp/pveupload-0 root@10.0.0.2:/srv/iso' failed: exit code 1"
    await livesThrough({
      match: { taskType: 'imgcopy' },
      times: 2,
      effect: { kind: 'taskFails', exitText, effects: 'none' },
    })
  })

  // Report: Telmate/terraform-provider-proxmox#1196
  it('that goes to a storage which cannot hold it is told of at once, with what to type', async () => {
    const world = defaultWorld()
    world.storages.push({ storage: 'thin', type: 'lvmthin', content: ['images'], vgname: 'pve' })
    const access = (world.acl ?? []).filter(({ path }) => path === '/storage/local')
    world.acl?.push(...access.map((entry) => ({ ...entry, path: '/storage/thin' })))
    lab = await openLab({ world, cluster: { isoStorage: 'thin' } })
    lab.request('alpha')
    const failed = await settled(lab, 'alpha')
    expect(failed).toMatchObject({
      phase: 'Failed',
      failedStep: 'seed',
      problem: { code: 'UnsupportedStorage', times: 1 },
    })
    expect(failed.problem?.hint).toContain('`pvesm status --content iso` must list thin')
  })

  // Report: hashicorp/packer-plugin-proxmox#349
  it('that Proxmox has no such method for is told of at once, with its words', async () => {
    lab = await openLab()
    lab.sim.faults.add({
      match: { method: 'POST', path: '/upload$' },
      effect: { kind: 'answer', answer: { status: 501, message: "Method 'POST /upload' not implemented" } },
    })
    lab.request('alpha')
    const failed = await settled(lab, 'alpha')
    expect(failed).toMatchObject({
      phase: 'Failed',
      failedStep: 'seed',
      problem: { code: 'Rejected', reason: expect.stringContaining('not implemented'), times: 1 },
    })
  })
})

// Report: hashicorp/packer-plugin-proxmox#247
// Report: k8s-proxmox/cluster-api-provider-proxmox#140
it('a life of five hours ends with the API token that it began with: no ticket is asked for, so none runs out', async () => {
  lab = await openLab()
  lab.request('alpha')
  const { place } = await atStep(lab, 'alpha', 'start')
  const vmid = place?.vmid ?? 0
  byHand(lab).qm(vmid, 'set', '--lock', 'backup')
  lab.clock.after(5 * HOUR_MS, () => byHand(lab).qm(vmid, 'unlock'))
  const ready = await settled(lab, 'alpha')
  expect(ready.phase).toBe('Ready')
  expect((ready.readyAt ?? 0) - ready.createdAt).toBeGreaterThan(5 * HOUR_MS)
  expect(lab.calls.map(({ call }) => call).filter((call) => call.includes('/access/'))).toEqual([])
  expect(lab.calls.filter(({ status }) => status === 401)).toEqual([])
})

describe('a guest agent that comes up late', () => {
  // Report: Telmate/terraform-provider-proxmox#325
  it('is found within six seconds of its coming up, and the row tells what each step took', async () => {
    lab = await openLab()
    lab.request('alpha')
    await atStep(lab, 'alpha', 'address')
    const id = lab.sim.faults.add({
      match: { method: 'GET', path: '/agent/' },
      effect: { kind: 'answer', answer: { status: 500, message: 'QEMU guest agent is not running' } },
    })
    const upAt = lab.clock.now() + 100_000
    lab.clock.after(100_000, () => lab.sim.faults.remove(id))
    const { timeline, createdAt, readyAt = 0 } = await settled(lab, 'alpha')
    expect(readyAt).toBeGreaterThanOrEqual(upAt)
    expect(readyAt - upAt).toBeLessThan(6000)
    const took = Object.fromEntries(timeline.map(({ step, ms }) => [step, ms]))
    expect(Object.keys(took)).toEqual(['reserve', 'clone', 'seed', 'configure', 'start', 'address', 'verify'])
    expect(took.address).toBeGreaterThan(took.clone ?? 0)
    expect(Object.values(took).reduce((sum, ms) => sum + ms)).toBe(readyAt - createdAt)
  })
})
