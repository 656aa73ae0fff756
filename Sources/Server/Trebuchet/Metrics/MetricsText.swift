internal import TrebuchetActors

/// A writer of the Prometheus text format (version 0.0.4). Pure.
struct MetricsText {
    /// The label names and values of one sample.
    typealias Labels = KeyValuePairs<String, String>

    /// The type of a metric, as in its `TYPE` line.
    enum Kind: String {
        case counter, gauge
    }

    private(set) var text = ""

    /// Appends a metric with one sample without labels.
    mutating func appendMetric(_ name: String, _ kind: Kind, _ help: String, _ value: Double) {
        appendHeader(name, kind.rawValue, help)
        sample(name, [:], nil, Self.number(value))
    }

    mutating func appendMetric(_ name: String, _ kind: Kind, _ help: String, _ value: some BinaryInteger) {
        appendHeader(name, kind.rawValue, help)
        sample(name, [:], nil, "\(value)")
    }

    /// Appends a metric with several labelled samples, or nothing if `samples` is empty.
    mutating func appendMetric(_ name: String, _ kind: Kind, _ help: String, _ samples: [(Labels, Double)]) {
        guard !samples.isEmpty else { return }
        appendHeader(name, kind.rawValue, help)
        for (labels, value) in samples { sample(name, labels, nil, Self.number(value)) }
    }

    /// Appends histograms with cumulative buckets.
    mutating func appendHistograms(_ name: String, _ help: String, _ samples: [(Labels, DurationHistogram)]) {
        guard !samples.isEmpty else { return }
        appendHeader(name, "histogram", help)
        for (labels, times) in samples {
            var count: UInt64 = 0
            for (index, bucket) in times.buckets.enumerated() {
                count &+= bucket
                let bound =
                    index < DurationBuckets.bounds.count
                    ? Self.number(Double(DurationBuckets.bounds[index]) / 1e9) : "+Inf"
                sample(name + "_bucket", labels, ("le", bound), "\(count)")
            }
            sample(name + "_sum", labels, nil, Self.number(Double(times.sum) / 1e9))
            sample(name + "_count", labels, nil, "\(count)")
        }
    }

    private mutating func appendHeader(_ name: String, _ kind: String, _ help: String) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind)\n"
    }

    private mutating func sample(
        _ name: String, _ labels: Labels, _ last: (name: String, value: String)?, _ value: String
    ) {
        text += name
        var separator = "{"
        for (label, value) in labels.map({ (name: $0.key, value: $0.value) }) + (last.map { [$0] } ?? []) {
            text += "\(separator)\(label)=\"\(Self.escaped(value))\""
            separator = ","
        }
        text += "\(separator == "{" ? "" : "}") \(value)\n"
    }

    /// Returns a number as all parsers of the format accept it; whole numbers have no decimal point.
    static func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? "\(Int64(value))" : "\(value)"
    }

    static func escaped(_ value: String) -> String {
        var text = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": text += "\\\\"
            case "\"": text += "\\\""
            case "\n": text += "\\n"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
