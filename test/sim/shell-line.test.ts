import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defaultWorld } from '../../sim/index.ts'
import { typeLine } from '../../sim/shell-line.ts'
import { openSim } from './harness.ts'

let opened: ReturnType<typeof openSim>
let vmid: string
beforeEach(async () => {
  const world = defaultWorld()
  opened = openSim({ world, tokens: world.tokens })
  vmid = '101'
  const clone = await opened.admin('POST', '/nodes/pve1/qemu/9000/clone', { newid: vmid })
  expect(await opened.task(clone.data)).toBe('OK')
})
afterEach(() => opened.sim.close())

/** The line to its end, the clock moved on. */
const type = (...argv: string[]) => opened.clock.until(typeLine(opened.sim, 'pve1', argv))
const status = () => opened.sim.qm('pve1', ['status', vmid]).stdout.trim()

describe('a line typed on a host', () => {
  it('goes on after && when what it began has ended well', async () => {
    expect(await type(`qm start ${vmid} && qm stop ${vmid} && qm destroy ${vmid} --purge`)).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: '',
    })
    expect(opened.sim.vms().some((vm) => String(vm.vmid) === vmid)).toBe(false)
  })

  it('stops at the first that fails, and says what that said', async () => {
    const { exitCode, stderr } = await type(`qm status 4711 && qm start ${vmid}`)
    expect(exitCode).toBe(2)
    expect(stderr).toContain("Configuration file 'nodes/pve1/qemu-server/4711.conf' does not exist")
    expect(status()).toBe('status: stopped')
  })

  it('stops where a task fails', async () => {
    opened.sim.faults.add({
      match: { taskType: 'qmstart' },
      effect: { kind: 'taskFails', exitText: 'start failed: no', effects: 'none' },
    })
    expect(await type(`qm start ${vmid} && qm set ${vmid} --cores 2`)).toEqual({
      exitCode: 255,
      stdout: '',
      stderr: 'start failed: no\n',
    })
    expect(opened.sim.qm('pve1', ['config', vmid]).stdout).toContain('cores: 1\n')
  })

  it('may come as words, of which && is one, and keeps what is quoted together', async () => {
    await type('qm', 'set', vmid, '--cores', '2', '&&', 'qm', 'set', vmid, '--tags', 'a;b')
    await type(`qm set ${vmid} --description '{"egress": 1} && more'`)
    const { config } = opened.sim.vms().find((vm) => String(vm.vmid) === vmid) ?? {}
    expect(config).toMatchObject({ cores: '2', tags: 'a;b', description: '{"egress": 1} && more' })
  })

  it.each([
    ['qm list | head', 'operator "|"'],
    ['qm list; qm list', 'operator ";"'],
    ['qm status $ID', 'variables'],
    ['qm status $(cat x)', 'command substitution'],
    ['qm list &&', 'an && without a command'],
  ])('is refused whole where it takes more of a shell: %s', async (line, what) => {
    const { exitCode, stderr } = await type(line)
    expect(exitCode).toBe(2)
    expect(stderr).toContain(`does not know`)
    expect(stderr).toContain(what)
  })
})

describe('what root looks with', () => {
  it('is the tasks of a node, of one VM, and what one of them said', async () => {
    await type(`qm start ${vmid}`)
    const { stdout } = await type(`pvenode task list --vmid ${vmid}`)
    expect(stdout).toMatch(/^│ UPID +│ Type +│ ID +│ User +│ Starttime +│ Endtime +│ Status │$/m)
    const [, upid = ''] =
      /│ (UPID:pve1:\S+:qmstart:101:root@pam:) │ qmstart │ 101 │.*│ OK +│/.exec(stdout) ?? []
    expect(stdout).not.toContain('qmclone')
    expect(await type(`pvenode task log ${upid}`)).toMatchObject({ exitCode: 0 })
    expect((await type('pvenode task list --source active')).stdout).not.toContain('UPID:')
  })

  it('is a storage, its volumes, and one of them freed', async () => {
    expect((await type('pvesm status --storage vmdata')).stdout).toMatch(
      /^vmdata +dir +active +\d+ +\d+ +\d+ +[\d.]+%$/m,
    )
    const [volid = ''] = /vmdata:\S*vm-101-disk-\S+/.exec((await type('pvesm list vmdata')).stdout) ?? []
    expect(await type(`pvesm free ${volid}`)).toMatchObject({ exitCode: 0 })
    expect((await type('pvesm list vmdata')).stdout).not.toContain(volid)
  })

  it('is the cluster as its node sees it', async () => {
    opened.sim.setNode('pve3', 'down')
    const { stdout } = await type('pvecm nodes')
    expect(stdout).toMatch(/1 pve1 \(local\)\n +2 +1 pve2\n/)
    expect(stdout).not.toContain('pve3')
    expect((await type('pvecm status')).stdout).toContain('Quorate:          Yes')
    expect((await type('pvesh get /cluster/resources --type vm')).stdout).toContain('qemu/101')
  })

  it('is who has a token, and until when', async () => {
    await type('pveum user token modify egress@pve ctl --expire 1800000000')
    expect((await type('pveum user token list egress@pve')).stdout).toMatch(/│ ctl +│ .*│ 1800000000 │ 1/)
    expect(await type('pveum user token modify egress@pve nobody --expire 0')).toMatchObject({ exitCode: 2 })
  })

  it('says of what is not there why not', async () => {
    expect(await type('systemctl status pveproxy')).toEqual({
      exitCode: 127,
      stdout: '',
      stderr:
        'systemctl status pveproxy: not in the simulator: there is no machine behind a simulated node to ask\n',
    })
  })
})
