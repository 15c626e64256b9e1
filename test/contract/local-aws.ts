import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { SQSClient } from '@aws-sdk/client-sqs'
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import { credentials, REGION } from '../../local/account.ts'
import { type Emulators, startEmulators } from '../../local/emulators.ts'
import { openPorts } from '../../local/ports.ts'

/** The emulators of `egress up` on free ports, and SDK clients as the functions make theirs but for the address. */
export type LocalAws = {
  emulators: Emulators
  tables: DynamoDBDocumentClient
  sqs: SQSClient
  close(): Promise<void>
}

export async function openLocalAws(): Promise<LocalAws> {
  const folder = mkdtempSync(join(tmpdir(), 'egress-contract-'))
  const emulators = await startEmulators({ folder, ports: openPorts(folder), functionTimeoutSeconds: 60 })
  const { dynamodb, sqs } = emulators.endpoints
  const tables = new DynamoDBClient({ endpoint: dynamodb, region: REGION, credentials })
  const queues = new SQSClient({ endpoint: sqs, region: REGION, credentials })
  return {
    emulators,
    tables: DynamoDBDocumentClient.from(tables, { marshallOptions: { removeUndefinedValues: true } }),
    sqs: queues,
    async close() {
      tables.destroy()
      queues.destroy()
      await emulators.close()
      rmSync(folder, { recursive: true })
    },
  }
}
