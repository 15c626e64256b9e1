import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import { allPhases, listRows } from '../../cli/rows.ts'
import type { Row } from '../../lib/record.ts'
import { credentials } from '../../local/account.ts'
import { type Run, readRun } from '../../local/run-file.ts'
import type { SimVm, SimVolume } from '../../sim/index.ts'
import { binary, root } from '../cli/egress.ts'

/** `egress up` as a person runs it, in a data folder of its own. */
export type Installation = {
  folder: string
  start(...flags: string[]): Promise<void>
  /** kill -9: nothing is finished, nothing is said. */
  kill(): Promise<void>
  run(): Run
  publish(event: object, queue?: 'create' | 'delete'): Promise<void>
  rows(): Promise<Row[]>
  /** Of ours in the simulated cluster: machines that are no template, and seeds. */
  vms(): Promise<SimVm[]>
  seeds(): Promise<SimVolume[]>
  until(what: string, holds: () => Promise<boolean>): Promise<void>
  close(): Promise<void>
}

export function createInstallation(): Installation {
  const folder = mkdtempSync(join(tmpdir(), 'egress-e2e-'))
  let up: ChildProcess | undefined

  const run = () => {
    const found = readRun(folder)
    if (!found) throw new Error('no egress up runs')
    return found
  }
  // The simulator's own door answers with its own types.
  const door = async <T>(list: string) => (await (await fetch(`${run().sim?.admin}/${list}`)).json()) as T
  const at = (service: 'sqs' | 'dynamodb') => ({
    endpoint: run().endpoints[service],
    region: run().region,
    credentials,
  })

  return {
    folder,
    run,
    async start(...flags) {
      const args = [binary, 'up', '--no-demo', '--data', folder, ...flags]
      const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] })
      up = child
      for await (const line of createInterface(child.stderr)) if (line.startsWith('egress is up')) return
      throw new Error('egress up ended')
    },
    async kill() {
      if (!up || up.exitCode !== null || up.signalCode !== null) return
      up.kill('SIGKILL')
      await once(up, 'exit')
    },
    async publish(event, queue = 'create') {
      const sqs = new SQSClient(at('sqs'))
      await sqs.send(
        new SendMessageCommand({ QueueUrl: run().queues[queue].url, MessageBody: JSON.stringify(event) }),
      )
      sqs.destroy()
    },
    async rows() {
      const client = new DynamoDBClient(at('dynamodb'))
      const rows = await listRows(DynamoDBDocumentClient.from(client), run().tables.proxies, allPhases)
      client.destroy()
      return rows
    },
    async vms() {
      const vms = await door<SimVm[]>('vms')
      return vms.filter(({ template }) => !template)
    },
    async seeds() {
      const volumes = await door<SimVolume[]>('volumes')
      return volumes.filter(({ content }) => content === 'iso')
    },
    async until(what, holds) {
      // The whole installation is real here, so this one waits in real time; the test's own limit ends it.
      for (let looks = 0; !(await holds()); looks++) {
        if (looks > 1200) throw new Error(`not reached: ${what}`)
        await new Promise((resolve) => setTimeout(resolve, 150))
      }
    },
    async close() {
      await this.kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
