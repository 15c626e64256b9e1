import type { Stage } from '../../../infra/stage.ts'
import type { Config } from '../../../lib/config.ts'
import type { Template } from '../template.ts'

/** What a template is judged by: what it was made from. */
export type Given = {
  config: Config
  stage: string
  /** Batches of each queue in work at once, where the stage says so. */
  concurrency: Stage['concurrency']
  logRetentionDays: number
  /** Who is to be told of alarms, if anybody. */
  alarmEmail?: string | undefined
  /** Networks of the clusters, when the stack makes the way to them. */
  clusterCidrs?: string[]
  /** Where that way ends. */
  peerAddress?: string
}

/** One thing that must hold; says all that does not, each with the name of the resource. */
export type Rule = (template: Template, given: Given) => string[]
