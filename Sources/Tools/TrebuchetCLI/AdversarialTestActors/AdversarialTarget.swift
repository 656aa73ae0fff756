import Synchronization
package import Trebuchet

/// The observed state.
package struct AdversarialTargetState: Codable, Sendable, Equatable {
    package var number = 0
    package var text = ""
    package var items: [String: Int] = [:]

    package init() {}
}

/// The error of `fail(_:)`.
package struct AdversarialTargetError: Error, Codable, Equatable {
    package let text: String

    package init(text: String) { self.text = text }
}

/// An argument that can be nested.
package struct AdversarialTargetTree: Codable, Sendable, Equatable {
    package var children: [AdversarialTargetTree]

    package init(children: [AdversarialTargetTree]) { self.children = children }

    package var depth: Int { 1 + (children.map(\.depth).max() ?? 0) }
}

/// An element of a collection.
package struct VictimCell: Codable, Sendable, Equatable, Identifiable {
    package var id: Int
    package var points: Int

    package init(id: Int, points: Int) { (self.id, self.points) = (id, points) }
}

/// An actor with a method of each kind, for `scripts/stress torment`.
@Trebuchet
package distributed actor AdversarialTarget {
    @StreamedState package var state: AdversarialTargetState = AdversarialTargetState()
    @StreamedState(delivery: .every(buffer: 64)) package var log: Int = 0
    @StreamedEvents(buffer: 1024) package var ticks: Int
    @StreamedState package var cells: KeyedCollection<VictimCell> = []

    private var tickCount = 0
    private var total = 0

    package distributed func sum(_ a: Int, _ b: Int) -> Int { a &+ b }

    package distributed func echo(_ text: String) -> String { text }

    /// Returns a text of the given size in bytes, at most 1 MiB.
    package distributed func text(_ bytes: Int) -> String { String(repeating: "x", count: min(max(0, bytes), 1 << 20)) }

    package distributed func depth(_ tree: AdversarialTargetTree) -> Int { tree.depth }

    package distributed func fail(_ text: String) throws(AdversarialTargetError) {
        throw AdversarialTargetError(text: text)
    }

    package distributed func nothing() {}

    /// Sets the number of the state, and one of its items.
    package distributed func set(_ number: Int) -> Int {
        state.number = number
        state.items["\(number & 15)"] = number
        log = number
        return number
    }

    /// Sets the state's text to the given size in bytes, at most 256 KiB.
    package distributed func fill(_ bytes: Int) {
        state.text = String(repeating: "x", count: min(max(0, bytes), 256 << 10))
    }

    /// Changes the state several times in one call, at most 1,000 times.
    package distributed func churn(_ count: Int) -> Int {
        for _ in 0..<min(max(0, count), 1_000) { state.number &+= 1 }
        return state.number
    }

    /// Sends several events, at most 1,000, numbered consecutively from 1 over the lifetime of the actor; returns the last
    /// number.
    package distributed func tick(_ count: Int) -> Int {
        for _ in 0..<min(max(0, count), 1_000) {
            tickCount += 1
            $ticks.send(tickCount)
        }
        return tickCount
    }

    /// Returns after a number of milliseconds, at most 3,000, or when it is cancelled.
    package distributed func later(_ milliseconds: Int) async throws -> Int {
        AdversarialTestActors.underWay.add(1, ordering: .relaxed)
        defer { AdversarialTestActors.underWay.subtract(1, ordering: .relaxed) }
        try await Task.sleep(for: .milliseconds(min(max(0, milliseconds), 3_000)))
        return milliseconds
    }

    /// Returns after a number of milliseconds, at most 2,000; cancellation has no effect.
    package distributed func stubborn(_ milliseconds: Int) async -> Int {
        AdversarialTestActors.underWay.add(1, ordering: .relaxed)
        defer { AdversarialTestActors.underWay.subtract(1, ordering: .relaxed) }
        let limit = min(max(0, milliseconds), 2_000)
        await Task.detached { try? await Task.sleep(for: .milliseconds(limit)) }.value
        return milliseconds
    }

    /// Inserts and appends cells, whatever their ids are; at most 100 stay. Gives their number.
    package distributed func keep(_ cells: [VictimCell], at index: Int) -> Int {
        for cell in cells.prefix(100) {
            self.cells.insert(cell, at: index)
            self.cells.append(cell)
        }
        if self.cells.count > 100 { self.cells.removeAll() }
        return self.cells.count
    }

    /// Replaces all cells.
    package distributed func adopt(_ cells: KeyedCollection<VictimCell>) -> Int {
        self.cells = KeyedCollection(Array(cells.prefix(100)) + cells.prefix(10))
        return self.cells.count
    }

    /// Gives a cell another id, which another cell may have.
    package distributed func renumber(_ id: Int, _ other: Int) -> Int {
        cells.update(id: id) { $0.id = other }
        return cells.count
    }

    /// Adds an amount to the total and returns the sum.
    @Idempotent
    package distributed func put(_ amount: Int) -> Int {
        total &+= amount
        return total
    }

    @Idempotent
    package distributed func putLater(_ amount: Int, milliseconds: Int) async throws -> Int {
        AdversarialTestActors.underWay.add(1, ordering: .relaxed)
        defer { AdversarialTestActors.underWay.subtract(1, ordering: .relaxed) }
        try await Task.sleep(for: .milliseconds(min(max(0, milliseconds), 1_000)))
        total &+= amount
        return total
    }
}
