import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { servePage } from '../../local/page-server.ts'
import { resume } from '../lab/by-hand.ts'
import { atStep } from '../lab/lab.ts'
import { type Bench, openBench } from './booted.ts'
import { cloudInitEnd, inside } from './inside.ts'
import { serveMirror } from './mirror.ts'
import { host, openRealLife, type RealLife, until } from './real-life.ts'
import { fetched } from './through.ts'

let bench: Bench
let life: RealLife
let page: Awaited<ReturnType<typeof servePage>>
let mirror: Awaited<ReturnType<typeof serveMirror>>

beforeAll(async () => {
  bench = await openBench()
  page = await servePage({ port: 0 })
  mirror = await serveMirror(bench.image.mirror)
})
afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') console.error(bench.consoles())
  await bench.end()
  await life.lab.close()
})
afterAll(async () => {
  await bench?.close()
  await page?.close()
  await mirror?.close()
})

/** As a publisher whose machines have a mirror of their own. */
const fromMirror = () => `#cloud-config
write_files:
  - path: /etc/apt/sources.list
    content: "deb [trusted=yes] http://${host}:${mirror.port}/ ./\\n"
`

it('a machine from a template with neither agent nor proxy installs both, and is Ready', async () => {
  life = await openRealLife({ page: page.port })
  const spec = await life.untilPowerOn({ spec: { userData: fromMirror(), proxy: { port: 3128 } } })
  const machine = await bench.boot(spec, bench.disk('bare'))
  await machine.forward('127.91.7.2', 3128)
  const row = await life.readAddress(machine, '127.91.7.2')
  expect(await life.verified('answers')).toMatchObject({ phase: 'Ready', endpoint: row.endpoint })
  expect(await cloudInitEnd(machine)).toEqual({ status: 'done', errors: [], complaints: '' })
  expect(mirror.asked).toContainEqual(expect.stringMatching(/^tinyproxy_.*\.deb$/))
  expect((await inside(machine, 'systemctl is-enabled tinyproxy')).trim()).toBe('enabled')
  const proxy = row.endpoint ?? ''
  expect((await fetched({ proxy, url: `http://${host}:${page.port}/` })).body).toContain('hello from egress')
})

it('without a package mirror it is told of as AgentNeverUp; with the mirror back, a restart as the hint says is all it takes', async () => {
  life = await openRealLife({ page: page.port })
  const spec = await life.untilPowerOn({ spec: { userData: fromMirror(), proxy: { port: 3128 } } })
  const disk = bench.disk('bare')
  const cutOff = await bench.boot(spec, disk, { isolated: true })
  await until('cloud-init ends', async () => /Cloud-init v\. \S+ finished/.test(cutOff.console()))
  expect(await cutOff.agent.ask('guest-ping', {}, 3000)).toBeUndefined()
  const failed = await life.withoutAgent()
  expect(failed).toMatchObject({
    phase: 'Failed',
    problem: { code: 'AgentNeverUp', hint: expect.stringMatching(/cloud-init-output\.log.*qm stop/) },
  })
  // Nobody can log in, so its console is where to look.
  expect(cutOff.console()).toMatch(/Unable to locate package qemu-guest-agent/)

  await cutOff.close()
  const machine = await bench.boot(spec, disk)
  await machine.forward('127.91.7.4', 3128)
  resume(life.lab, 'alpha')
  await atStep(life.lab, 'alpha', 'address')
  await life.readAddress(machine, '127.91.7.4')
  expect(await life.verified('answers')).toMatchObject({ phase: 'Ready' })
})

it('with the agent alone and without internet it is told of as ProxyNeverAnswered, and the log says why', async () => {
  const userData = '#cloud-config\nbootcmd:\n  - dpkg --purge tinyproxy tinyproxy-bin\n'
  life = await openRealLife({ page: page.port })
  const spec = await life.untilPowerOn({ spec: { userData, proxy: { port: 3128 } } })
  const machine = await bench.boot(spec, bench.disk('golden'), { isolated: true })
  await machine.forward('127.91.7.3', 3128)
  await life.readAddress(machine, '127.91.7.3')
  expect((await cloudInitEnd(machine)).status).toBe('error')
  expect(await life.verified('silent')).toMatchObject({
    phase: 'Failed',
    problem: { code: 'ProxyNeverAnswered', hint: expect.stringContaining('/var/log/cloud-init-output.log') },
  })
  expect(await inside(machine, 'cat /var/log/cloud-init-output.log')).toMatch(
    /Unable to locate package tinyproxy|Package 'tinyproxy' has no installation candidate|Failed to fetch/,
  )
})
