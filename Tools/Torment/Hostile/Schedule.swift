/// The behavior of one hostile client, from its connection to its end.
struct Scenario: Equatable, Sendable, CustomStringConvertible {
    enum PortKind: String, CaseIterable, Sendable {
        case plain, tls
        /// TCP to the port that expects TLS.
        case bare
        /// TCP to a server whose standard output and standard error are a full pipe, or one without a reader.
        case full, closed
    }

    var line = PortKind.plain
    var steps: [Step] = []

    var description: String { ([line.rawValue] + steps.map(\.description)).joined(separator: " ") }

    init(_ line: PortKind, _ steps: [Step]) {
        self.line = line
        self.steps = steps
    }

    init(_ steps: [Step]) { self.init(.plain, steps) }

    init?(reading text: Substring) {
        var words = text.split(separator: " ")
        guard let first = words.first, let line = PortKind(rawValue: String(first)) else { return nil }
        words.removeFirst()
        self.line = line
        for word in words {
            guard let step = Step(word) else { return nil }
            steps.append(step)
        }
    }
}

/// Scenarios that start together, as one line: `plain upgrade:3 reset
/// tls upgrade:3 leave`.
struct Schedule: Equatable, Sendable, CustomStringConvertible {
    var scenarios: [Scenario]

    var description: String { scenarios.map(\.description).joined(separator: " | ") }

    init(_ scenarios: [Scenario]) { self.scenarios = scenarios }

    init?(reading text: String) {
        scenarios = []
        for part in text.split(separator: "|") {
            guard let scenario = Scenario(reading: part) else { return nil }
            scenarios.append(scenario)
        }
        guard !scenarios.isEmpty else { return nil }
    }
}
