import { createSim, defaultWorld } from '../../sim/index.ts'

/** A process that begins a clone of some seconds and is then killed by the test. Its state is all that it leaves. */
const [stateDir = '', secret = ''] = process.argv.slice(2)
const sim = createSim({ world: defaultWorld({ secret }), stateDir, durations: { cloneMs: 60_000 } })
const { body } = await sim.request('pve1', {
  method: 'POST',
  path: '/api2/json/nodes/pve1/qemu/9000/clone',
  headers: {
    authorization: `PVEAPIToken=egress@pve!ctl=${secret}`,
    'content-type': 'application/x-www-form-urlencoded',
  },
  body: Buffer.from('newid=101&name=survivor&pool=egress&full=1'),
})
const placeholder = setInterval(() => {
  if (!sim.vms().some((vm) => vm.vmid === 101)) return
  clearInterval(placeholder)
  process.stdout.write(`${body}\n`)
}, 5)
