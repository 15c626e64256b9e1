import { readFileSync } from 'node:fs'
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import { allPhases, listRows } from '../cli/rows.ts'

// One of the things that look at everything, in a process of its own, so that its memory can be told.
const [what] = process.argv.slice(2)
const context = { awsRequestId: 'bench', getRemainingTimeInMillis: () => 300_000 }

const works: Record<string, () => Promise<() => Promise<unknown>>> = {
  nothing: async () => async () => 0,
  list: async () => {
    const client = DynamoDBDocumentClient.from(new DynamoDBClient({}))
    return async () => (await listRows(client, process.env.EGRESS_PROXIES_TABLE ?? '', allPhases)).length
  },
  'egress list': async () => {
    const { main } = await import('../cli/main.ts')
    return async () => {
      const code = await main(['list', '--all'], process.env)
      if (code !== 0) throw new Error(`egress list ended with ${code}`)
      return code
    }
  },
  gc: async () => {
    const { handler } = await import('../functions/gc/handler.ts')
    return async () => {
      const { looked, skipped } = await handler({}, context)
      if (skipped.length > 0) throw new Error(`gc has not looked at all: ${JSON.stringify(skipped)}`)
      return looked
    }
  },
  check: async () => {
    const { handler } = await import('../functions/check/handler.ts')
    return async () => (await handler({}, context)).summary
  },
}
const prepare = works[what ?? '']
if (!prepare || !process.send) throw new Error(`to be forked with one of ${Object.keys(works).join(', ')}`)
const work = await prepare()
const startedMs = performance.now()
const said = await work()
process.send({
  seconds: (performance.now() - startedMs) / 1000,
  peakMiB: peakMiB(),
  said,
})
process.disconnect()
process.exit(0)

/** Of this program alone: `maxRSS` would tell that of the process it was forked from as well. Source: proc(5), VmHWM. */
function peakMiB(): number {
  const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
  if (kib === undefined) throw new Error('this system does not tell the peak of a process')
  return Number(kib) / 1024
}
