import { Metrics } from '@aws-lambda-powertools/metrics'
import { METRICS, type Measure, type Measurement, NAMESPACE } from './metrics.ts'

/**
 * Writes measurements as lines in CloudWatch's embedded metric format, a line for each set of dimensions: CloudWatch makes
 * metrics of such lines of a log by itself. `write` is given whole lines.
 * Source: "Specification: Embedded metric format", Amazon CloudWatch user guide.
 */
export function createEmf(deployment: string, write: (line: string) => void): Measure {
  const metrics = new Metrics({ namespace: NAMESPACE })
  // It would call the deployment `service`.
  metrics.clearDefaultDimensions()
  metrics.setDefaultDimensions({ deployment })
  return (measurements) => {
    for (const alike of Map.groupBy(measurements, ({ by }) => JSON.stringify(by)).values()) {
      for (const { name, value } of alike) metrics.addMetric(name, METRICS[name].unit, value)
      for (const [dimension, value] of dimensionsOf(alike)) metrics.addDimension(dimension, value)
      write(`${JSON.stringify(metrics.serializeMetrics())}\n`)
      metrics.clearMetrics()
      metrics.clearDimensions()
    }
  }
}

const dimensionsOf = ([first]: readonly Measurement[]) => Object.entries(first?.by ?? {})
