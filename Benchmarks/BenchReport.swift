import Networking
import Platform

/// The figures of a run, in the order in which they are printed.
struct BenchReport {
    private var rows: [(name: String, value: Double)] = []

    subscript(name: String) -> Double? { rows.first { $0.name == name }?.value }

    mutating func add(_ name: String, _ value: Double) { rows.append((name, value)) }

    mutating func add(_ name: String, _ value: Int) { add(name, Double(value)) }

    mutating func add(_ latency: Histogram) {
        add("p50_us", latency.microseconds(0.5))
        add("p90_us", latency.microseconds(0.9))
        add("p99_us", latency.microseconds(0.99))
        add("max_us", Double(latency.largest) / 1000)
    }

    func print(asJSON: Bool) {
        if asJSON {
            let members = rows.map { "\"\($0.name)\":\(Self.text($0.value))" }
            return Swift.print("{" + members.joined(separator: ",") + "}")
        }
        let width = rows.map(\.name.count).max() ?? 0
        for row in rows {
            Swift.print(row.name + String(repeating: " ", count: width - row.name.count + 2) + Self.text(row.value))
        }
    }

    private static func text(_ value: Double) -> String {
        if value == value.rounded() || value.magnitude >= 1000 { return String(Int(value.rounded())) }
        return String((value * 10).rounded() / 10)
    }
}

extension Array where Element: Comparable {
    var median: Element { sorted()[count / 2] }
}

extension MonotonicClock {
    static func seconds(since start: UInt64) -> Double { Double(now - start) / 1e9 }
}
