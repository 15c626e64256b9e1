import { isDeepStrictEqual } from 'node:util'
import { tables as shapes, type TableShape } from '../../../local/resources.ts'
import { ofType, type Template } from '../template.ts'
import type { Rule } from './rule.ts'

const tables = (template: Template) => ofType(template, 'AWS::DynamoDB::Table')

/** What runs on one machine and on AWS has the same keys and indexes, or the tests of the one would say nothing of the other. */
export const tablesAreThoseOfOneMachine: Rule = ({ Resources }) => {
  const named: Record<string, TableShape> = { ProxiesTable: shapes.proxies, ClaimsTable: shapes.claims }
  return Object.entries(named).flatMap(([name, shape]) => {
    const { Properties } = Resources[name] ?? {}
    if (!Properties) return [`there is no ${name}`]
    const found = []
    if (!isDeepStrictEqual(Properties.KeySchema, shape.keys)) found.push(`${name} has other keys`)
    if (!isDeepStrictEqual(Properties.AttributeDefinitions, shape.attributes))
      found.push(`${name} has other attributes`)
    if (!isDeepStrictEqual(Properties.GlobalSecondaryIndexes, shape.indexes))
      found.push(`${name} has other indexes`)
    const { AttributeName, Enabled } = Properties.TimeToLiveSpecification ?? {}
    if (AttributeName !== shape.ttlAttribute || Enabled !== true)
      found.push(`${name} does not expire by ${shape.ttlAttribute}`)
    return found
  })
}

export const tablesArePaidByUse: Rule = (template) =>
  tables(template)
    .filter(([, { Properties }]) => Properties.BillingMode !== 'PAY_PER_REQUEST')
    .map(([name]) => `${name} is not on demand`)

export const tablesCanBeRestored: Rule = (template) =>
  tables(template)
    .filter(
      ([, { Properties }]) =>
        Properties.PointInTimeRecoverySpecification?.PointInTimeRecoveryEnabled !== true,
    )
    .map(([name]) => `${name} has no point-in-time recovery`)

export const tablesAreEncrypted: Rule = (template) =>
  tables(template)
    .filter(([, { Properties }]) => Properties.SSESpecification?.SSEEnabled !== true)
    .map(([name]) => `${name} is not encrypted with a key of the account`)

/** Without its rows nobody knows which machines are ours. */
export const tablesOutliveTheStack: Rule = (template) =>
  tables(template).flatMap(([name, { Properties, DeletionPolicy, UpdateReplacePolicy }]) => {
    const found = []
    if (DeletionPolicy !== 'Retain' || UpdateReplacePolicy !== 'Retain')
      found.push(`${name} goes with the stack`)
    if (Properties.DeletionProtectionEnabled !== true) found.push(`${name} can be deleted by anyone who may`)
    return found
  })
