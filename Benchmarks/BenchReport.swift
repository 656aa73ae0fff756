import Commands
import Networking
import Platform

/// The results of a run, in the order in which they are printed.
struct BenchReport {
    private var rows: [(name: String, value: Double)] = []
    /// The subject of the measurement, if a benchmark has several.
    private var subject: (name: String, text: String)?

    subscript(name: String) -> Double? { rows.first { $0.name == name }?.value }

    /// Sets the subject, which is printed before the results.
    ///
    /// - Parameter text: a text without characters that JSON escapes.
    mutating func setSubject(_ name: String, _ text: String) { subject = (name, text) }

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
            let subjectMembers = subject.map { ["\"\($0.name)\":\"\($0.text)\""] } ?? []
            let members = subjectMembers + rows.map { "\"\($0.name)\":\(Self.text($0.value))" }
            return Console.print("{" + members.joined(separator: ",") + "}")
        }
        let lines = (subject.map { [($0.name, $0.text)] } ?? []) + rows.map { ($0.name, Self.text($0.value)) }
        let width = lines.map(\.0.count).max() ?? 0
        for (name, text) in lines {
            Console.print(name + String(repeating: " ", count: width - name.count + 2) + text)
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
