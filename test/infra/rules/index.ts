import type { Template } from '../template.ts'
import * as alarms from './alarms.ts'
import * as functions from './functions.ts'
import * as network from './network.ts'
import * as queues from './queues.ts'
import * as roles from './roles.ts'
import type { Given } from './rule.ts'
import * as schedules from './schedules.ts'
import * as specification from './specification.ts'
import * as tables from './tables.ts'
import * as topics from './topics.ts'

type AnyRule = (template: Template, given: Given) => string[] | Promise<string[]>

const { functions: _, mappings: __, roomOf: ___, ...ofFunctions } = functions
const { statementsOf: ____, granted: _____, ...ofRoles } = roles

/** Every rule by its name, which says what holds. */
export const rules = {
  ...specification,
  ...queues,
  ...ofFunctions,
  ...tables,
  ...topics,
  ...alarms,
  ...network,
  ...ofRoles,
  ...schedules,
} satisfies Record<string, AnyRule>
export type RuleName = keyof typeof rules
