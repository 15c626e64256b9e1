import * as z from 'zod'
import { parseWith } from './wanted.ts'

/** What a deployed function, or the same function on one machine, finds in its environment. AWS's own variables are the SDK's. */
export const Environment = z.object({
  /** Path of the stage's YAML file. */
  EGRESS_CONFIG: z.string().min(1),
  EGRESS_PROXIES_TABLE: z.string().min(1),
  EGRESS_CLAIMS_TABLE: z.string().min(1),
  EGRESS_CREATE_QUEUE_URL: z.url(),
  EGRESS_DELETE_QUEUE_URL: z.url(),
  EGRESS_CREATE_DLQ_URL: z.url(),
  EGRESS_DELETE_DLQ_URL: z.url(),
  EGRESS_TOPIC_ARN: z.string().startsWith('arn:'),
  EGRESS_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
})
export type Environment = z.infer<typeof Environment>

/** Reads the environment once, at cold start. @throws {Error} naming every wrong variable and no value */
export function readEnvironment(env: Readonly<Record<string, string | undefined>>): Environment {
  const present = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))
  const parsed = parseWith(Environment, present)
  if ('value' in parsed) return parsed.value
  const lines = parsed.complaints.map(({ path, wanted }) => `  ${path}: wanted ${wanted}`)
  throw new Error(['the environment is not complete:', ...lines].join('\n'))
}
