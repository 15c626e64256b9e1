import { loadAwsServiceSpec } from '@aws-cdk/aws-service-spec'
import { list, ofType, type Template, walk } from '../template.ts'
import type { Rule } from './rule.ts'

/** CloudFormation's own description of its resources. Its classes bring more than is used here. */
const specification = await loadAwsServiceSpec()

type PropertyType =
  | { type: 'string' | 'boolean' | 'integer' | 'number' | 'json' | 'date-time' | 'tag' | 'null' }
  | { type: 'array' | 'map'; element: PropertyType }
  | { type: 'union'; types: PropertyType[] }
  | { type: 'ref'; reference: { $ref: string } }
type Properties = Record<string, { type: PropertyType; required?: boolean }>

const resourceOf = (type: string) => specification.lookup('resource', 'cloudFormationType', 'equals', type)[0]

/** Every type and property is one that CloudFormation knows, nothing that it demands is missing, and every value is of its kind. */
export const knownToCloudFormation: Rule = ({ Resources }) =>
  Object.entries(Resources).flatMap(([name, { Type, Properties = {} }]) => {
    const resource = resourceOf(Type)
    if (!resource) return [`${name}: no resource type is called ${Type}`]
    return problems(Properties, resource.properties as Properties, name)
  })

function problems(value: Record<string, unknown>, known: Properties, path: string): string[] {
  const missing = Object.entries(known)
    .filter(([name, { required }]) => required && value[name] === undefined)
    .map(([name]) => `${path}.${name} is missing`)
  const wrong = Object.entries(value).flatMap(([name, inner]) => {
    const property = known[name]
    return property
      ? mismatch(inner, property.type, `${path}.${name}`)
      : [`${path}.${name}: no such property`]
  })
  return [...missing, ...wrong]
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** `Ref`, `Fn::…`: computed by CloudFormation, so that only the deployment knows what comes of it. */
const isComputed = (value: unknown) =>
  isObject(value) && Object.keys(value).length === 1 && /^(Ref|Fn::\w+)$/.test(Object.keys(value)[0] ?? '')

function mismatch(value: unknown, type: PropertyType, path: string): string[] {
  if (isComputed(value)) return []
  switch (type.type) {
    case 'string':
      return typeof value === 'string' || typeof value === 'number' ? [] : [`${path}: wanted a text`]
    case 'boolean':
      return typeof value === 'boolean' ? [] : [`${path}: wanted true or false`]
    case 'integer':
      return Number.isInteger(value) ? [] : [`${path}: wanted a whole number`]
    case 'number':
      return typeof value === 'number' ? [] : [`${path}: wanted a number`]
    case 'array':
      if (!Array.isArray(value)) return [`${path}: wanted a list`]
      return value.flatMap((inner, index) => mismatch(inner, type.element, `${path}.${index}`))
    case 'map':
      if (!isObject(value)) return [`${path}: wanted a map`]
      return Object.entries(value).flatMap(([key, inner]) => mismatch(inner, type.element, `${path}.${key}`))
    case 'union': {
      const tried = type.types.map((one) => mismatch(value, one, path))
      return tried.find((found) => found.length === 0) ?? tried[0] ?? []
    }
    case 'ref': {
      if (!isObject(value)) return [`${path}: wanted an object`]
      return problems(
        value,
        specification.get('typeDefinition', type.reference.$ref).properties as Properties,
        path,
      )
    }
    case 'tag':
      return isObject(value) && 'Key' in value && 'Value' in value ? [] : [`${path}: wanted a tag`]
    default:
      return []
  }
}

/** What is referred to is there, and has the attribute that is asked of it. */
export const refersToWhatIsThere: Rule = (template) => {
  const { Resources, Conditions = {}, Outputs = {} } = template
  const found: string[] = []
  const demand = (name: string, path: string, attribute?: string) => {
    if (name.startsWith('AWS::')) return
    const resource = Resources[name]
    if (!resource) found.push(`${path}: there is no ${name}`)
    else if (attribute !== undefined && !hasAttribute(resource.Type, attribute))
      found.push(`${path}: ${name}, a ${resource.Type}, has no attribute ${attribute}`)
  }
  for (const { path, value } of walk({ Resources, Outputs })) {
    const key = path.at(-1)
    const where = path.slice(1, -1).join('.')
    if (key === 'Ref') demand(String(value), where)
    if (key === 'Fn::GetAtt') {
      const [name = '', ...attribute] = list(value).flatMap((part) => String(part).split('.'))
      demand(name, where, attribute.join('.'))
    }
    if (key === 'Fn::Sub')
      for (const [, name = '', attribute] of String(list(value)[0]).matchAll(
        /\$\{([\w:]+)(?:\.([\w.]+))?\}/g,
      ))
        demand(name, where, attribute)
  }
  for (const [name, { DependsOn, Condition }] of Object.entries(Resources)) {
    for (const other of list(DependsOn)) demand(other, `${name}.DependsOn`)
    if (Condition !== undefined && !(Condition in Conditions))
      found.push(`${name}: there is no condition ${Condition}`)
  }
  return found
}

const hasAttribute = (type: string, attribute: string) =>
  Object.hasOwn(resourceOf(type)?.attributes ?? {}, attribute)

/** No circle of references: CloudFormation could make none of its resources first. */
export const canBeMadeInSomeOrder: Rule = (template) => {
  const needs = new Map(Object.keys(template.Resources).map((name) => [name, dependencies(template, name)]))
  const made = new Set<string>()
  for (;;) {
    const ready = [...needs].filter(
      ([name, others]) => !made.has(name) && others.every((other) => made.has(other)),
    )
    if (ready.length === 0) break
    for (const [name] of ready) made.add(name)
  }
  const stuck = [...needs.keys()].filter((name) => !made.has(name))
  return stuck.length === 0 ? [] : [`wait for each other: ${stuck.join(', ')}`]
}

function dependencies({ Resources }: Template, name: string): string[] {
  const resource = Resources[name]
  const found = new Set(list(resource?.DependsOn))
  for (const { path, value } of walk(resource?.Properties)) {
    const key = path.at(-1)
    if (key === 'Ref') found.add(String(value))
    if (key === 'Fn::GetAtt') found.add(String(list(value)[0]).split('.')[0] ?? '')
    if (key === 'Fn::Sub')
      for (const [, other = ''] of String(list(value)[0]).matchAll(/\$\{(\w+)(?:\.[\w.]+)?\}/g))
        found.add(other)
  }
  return [...found].filter((other) => other !== name && other in Resources)
}

/** What has a name of its own, which must be one that others of the account do not have. */
export const namedByStage: Rule = (template, { stage }) => {
  const names: Record<string, string> = {
    'AWS::SQS::Queue': 'QueueName',
    'AWS::SNS::Topic': 'TopicName',
    'AWS::Lambda::Function': 'FunctionName',
    'AWS::CloudWatch::Alarm': 'AlarmName',
    'AWS::Events::Rule': 'Name',
    'AWS::Scheduler::Schedule': 'Name',
    'AWS::Scheduler::ScheduleGroup': 'Name',
  }
  return Object.entries(names).flatMap(([type, property]) =>
    ofType(template, type)
      .filter(([, { Properties }]) => !String(Properties[property]).startsWith(`egress-${stage}-`))
      .map(([name]) => `${name}.${property} does not start with egress-${stage}-`),
  )
}
