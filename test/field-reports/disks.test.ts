import { afterEach, describe, expect, it } from 'vitest'
import { type DefaultWorld, defaultWorld } from '../../sim/index.ts'
import { deadLetterCodes, expectDeletable } from '../functions/adversity.ts'
import { byHand } from '../lab/by-hand.ts'
import { atStep, type Lab, type LabOptions, openLab, settled } from '../lab/lab.ts'

let lab: Lab
/** What was asked of Proxmox when it was asked to change a VM. */
let changes: { call: string; form: URLSearchParams }[]
const open = async (options: LabOptions = {}) => {
  changes = []
  lab = await openLab({
    ...options,
    interpose: ({ surroundings, exchange }) => ({
      surroundings,
      exchange(endpoint, request) {
        const [, call] = /\/qemu\/\d+\/(config|resize)$/.exec(request.path) ?? []
        const form = new URLSearchParams(Buffer.from(request.body ?? []).toString())
        if (call !== undefined && request.method !== 'GET') changes.push({ call, form })
        return exchange(endpoint, request)
      },
    }),
  })
}
afterEach(() => lab?.close())

const GIB = 1024 ** 3
const placeOf = () => {
  const place = lab.row('alpha')?.place
  if (!place) throw new Error('alpha has no place')
  return place
}
const theVm = () => byHand(lab).vm(placeOf().vmid)
const resizes = () => changes.filter(({ call }) => call === 'resize')
const disksOf = (vmid: number) =>
  lab.sim.volumes().filter((one) => one.vmid === vmid && one.content === 'images')

/** Templates whose options are these beside their own; `VMID` stands for each template's. */
function worldWith(options: Record<string, string>, volumes: { name: string; sizeBytes: number }[] = []) {
  const world = defaultWorld()
  for (const vm of world.vms ?? []) {
    const filled = (text: string) => text.replaceAll('VMID', String(vm.vmid))
    for (const [key, value] of Object.entries(options)) vm.config[key] = filled(value)
    for (const { name, sizeBytes } of volumes)
      world.volumes?.push({ storage: 'vmdata', node: vm.node, name: filled(name), sizeBytes })
  }
  return world
}

/** Templates whose disk is of this size. */
function worldOfSize(sizeBytes: number, text: string): DefaultWorld {
  const world = worldWith({ scsi0: `vmdata:VMID/base-VMID-disk-0.qcow2,size=${text}` })
  for (const volume of world.volumes ?? []) volume.sizeBytes = sizeBytes
  return world
}

describe('a template with an EFI disk and a TPM', () => {
  const world = () =>
    worldWith(
      {
        bios: 'ovmf',
        efidisk0: 'vmdata:VMID/base-VMID-disk-1.qcow2,efitype=4m,pre-enrolled-keys=1,size=528K',
        tpmstate0: 'vmdata:VMID/base-VMID-disk-2.qcow2,size=4M,version=v2.0',
      },
      [
        { name: 'VMID/base-VMID-disk-1.qcow2', sizeBytes: 528 * 1024 },
        { name: 'VMID/base-VMID-disk-2.qcow2', sizeBytes: 4 * 1024 ** 2 },
      ],
    )

  // Report: bpg/terraform-provider-proxmox#759
  // Report: bpg/terraform-provider-proxmox#1888
  it.each(['linked', 'full'])(
    'is made a proxy of by a %s clone, whose boot disk alone grows',
    async (clone) => {
      await open({ world: world(), cluster: { clone } })
      lab.request('alpha')
      expect((await settled(lab, 'alpha')).phase).toBe('Ready')
      expect(resizes().map(({ form }) => form.get('disk'))).toEqual(['scsi0'])
      const sizes = disksOf(placeOf().vmid).map(({ sizeBytes }) => sizeBytes)
      expect(sizes.sort((a, b) => a - b)).toEqual([528 * 1024, 4 * 1024 ** 2, 4 * GIB])
      await expectDeletable(lab, 'alpha')
    },
  )

  it('does not take the EFI disk for the one to boot from, where no order says which it is', async () => {
    const bare = world()
    for (const { config } of bare.vms ?? []) delete config.boot
    await open({ world: bare })
    lab.request('alpha')
    expect((await settled(lab, 'alpha')).phase).toBe('Ready')
    expect(theVm().config.boot).toBe('order=scsi0')
  })
})

describe('the disk of a clone', () => {
  // Report: Telmate/terraform-provider-proxmox#919
  // Report: Telmate/terraform-provider-proxmox#1471
  it('is never written about: what is sent are options of ours, and the disk that was cloned is grown', async () => {
    await open()
    lab.request('alpha')
    await atStep(lab, 'alpha', 'configure')
    const [cloned] = disksOf(placeOf().vmid)
    await settled(lab, 'alpha')
    const ours = 'agent boot cores digest ide2 memory net0 onboot sockets tags'.split(' ')
    for (const { call, form } of changes)
      if (call === 'config') expect(ours).toEqual(expect.arrayContaining([...form.keys()]))
    expect(String(theVm().config.scsi0)).toContain(cloned?.volid)
    expect(disksOf(placeOf().vmid)).toEqual([{ ...cloned, sizeBytes: 4 * GIB }])
    expect(theVm().config).not.toHaveProperty('unused0')
  })

  // Report: Telmate/terraform-provider-proxmox#1471
  it('that was taken off and left unused is told of, and nothing is started without it', async () => {
    await open()
    lab.request('alpha')
    await atStep(lab, 'alpha', 'configure')
    const { node, vmid } = placeOf()
    const path = `/nodes/${node}/qemu/${vmid}/config`
    expect((await byHand(lab).api('PUT', path, { delete: 'scsi0', boot: 'order=net0' })).status).toBe(200)
    expect(theVm().config).toHaveProperty('unused0')
    expect(await settled(lab, 'alpha')).toMatchObject({
      phase: 'Failed',
      problem: { code: 'TemplateProblem', reason: expect.stringContaining('no disk to boot from') },
    })
    expect(theVm().running).toBe(false)
    await expectDeletable(lab, 'alpha')
  })

  // Report: Telmate/terraform-provider-proxmox#1471
  it('that the boot order has lost is put back into it before the start', async () => {
    await open()
    lab.request('alpha')
    await atStep(lab, 'alpha', 'configure')
    byHand(lab).qm(placeOf().vmid, 'set', '--boot', 'order=net0')
    await atStep(lab, 'alpha', 'start')
    expect(theVm().config.boot).toBe('order=scsi0')
  })

  const unseen = [
    (volid: string) => `volume '${volid}' does not exist`,
    (volid: string) => `volume_size_info on '${volid}' failed - no format`,
  ]

  // Report: bpg/terraform-provider-proxmox#1599
  it.each(unseen)('that its storage does not show yet is looked at again, and grown (%#)', async (text) => {
    await open()
    lab.request('alpha')
    await atStep(lab, 'alpha', 'configure')
    const exitText = text(disksOf(placeOf().vmid)[0]?.volid ?? '')
    lab.sim.faults.add({
      match: { taskType: 'resize' },
      times: 3,
      effect: { kind: 'taskFails', exitText, effects: 'none' },
    })
    expect((await settled(lab, 'alpha')).phase).toBe('Ready')
    expect(resizes()).toHaveLength(4)
    expect(disksOf(placeOf().vmid)[0]?.sizeBytes).toBe(4 * GIB)
  })

  // Report: bpg/terraform-provider-proxmox#1599
  it('that its storage never shows is told of, in time', async () => {
    await open()
    lab.request('alpha')
    await atStep(lab, 'alpha', 'configure')
    const from = lab.clock.now()
    const exitText = unseen[0]?.(disksOf(placeOf().vmid)[0]?.volid ?? '') ?? ''
    lab.sim.faults.add({
      match: { taskType: 'resize' },
      effect: { kind: 'taskFails', exitText, effects: 'none' },
    })
    expect(await settled(lab, 'alpha')).toMatchObject({
      phase: 'Failed',
      failedStep: 'configure',
      problem: { reason: expect.stringContaining('VolumeMissing') },
    })
    expect(resizes().length).toBeLessThan(40)
    expect(lab.clock.now() - from).toBeLessThan(15 * 60_000)
    expect(deadLetterCodes(lab)).toEqual(['StepTimedOut'])
    await expectDeletable(lab, 'alpha')
  })

  // Report: bpg/terraform-provider-proxmox#1313
  it.each([
    ['2G', 2 * GIB, 1],
    ['4095M', 4095 * 1024 ** 2, 1],
    ['4G', 4 * GIB, 0],
    ['4608M', 4608 * 1024 ** 2, 0],
    ['8G', 8 * GIB, 0],
  ])(
    'of %s is grown to 4 GiB where it is smaller, and else left as it is',
    async (text, sizeBytes, times) => {
      await open({ world: worldOfSize(sizeBytes, text) })
      lab.request('alpha')
      expect((await settled(lab, 'alpha')).phase).toBe('Ready')
      expect(resizes()).toHaveLength(times)
      expect(disksOf(placeOf().vmid)[0]?.sizeBytes).toBe(Math.max(sizeBytes, 4 * GIB))
    },
  )
})
