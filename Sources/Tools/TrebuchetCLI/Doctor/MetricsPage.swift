/// The samples of a page in the text format of Prometheus. Lines that are not samples are ignored.
struct MetricsPage {
    /// One sample of a metric.
    struct Sample {
        var labels: [String: String] = [:]
        var value = 0.0
    }

    private var samples: [String: [Sample]] = [:]

    init(_ text: String) {
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            guard let (name, sample) = Self.sample(line) else { continue }
            samples[name, default: []].append(sample)
        }
    }

    /// Returns the samples of a metric.
    func all(_ name: String) -> [Sample] { samples[name] ?? [] }

    /// Returns the value of a metric without labels; nil if the page does not have it.
    func value(_ name: String) -> Double? { samples[name]?.first?.value }

    /// Returns the sum of the samples whose labels pass.
    func sum(_ name: String, where isWanted: ([String: String]) -> Bool = { _ in true }) -> Double {
        all(name).filter { isWanted($0.labels) }.map(\.value).reduce(0, +)
    }

    /// Parses `name{label="value"} number`.
    private static func sample(_ line: Substring) -> (String, Sample)? {
        var rest = line
        let name = String(rest.prefix { $0 != "{" && $0 != " " })
        rest = rest.dropFirst(name.count)
        var sample = Sample()
        if rest.first == "{" {
            rest = rest.dropFirst()
            while let label = label(&rest) { sample.labels[label.name] = label.value }
            guard rest.first == "}" else { return nil }
            rest = rest.dropFirst()
        }
        guard !name.isEmpty, let value = rest.split(separator: " ").first.flatMap({ Double($0) }) else { return nil }
        sample.value = value
        return (name, sample)
    }

    private static func label(_ rest: inout Substring) -> (name: String, value: String)? {
        if rest.first == "," { rest = rest.dropFirst() }
        let name = String(rest.prefix { $0 != "=" && $0 != "}" })
        guard !name.isEmpty, rest.dropFirst(name.count).hasPrefix("=\"") else { return nil }
        rest = rest.dropFirst(name.count + 2)
        var value = ""
        while let next = rest.popFirst(), next != "\"" {
            guard next == "\\", let escaped = rest.popFirst() else {
                value.append(next)
                continue
            }
            value.append(escaped == "n" ? "\n" : escaped)
        }
        return (name, value)
    }
}
