import Trebuchet

/// Two persisted states and one that is not.
@Trebuchet
distributed actor Diary {
    @StreamedState(persisted: true) var pages: [String] = []
    @StreamedState(persisted: true) var owner: String = "nobody"
    @StreamedState var readers: Int = 0

    distributed func write(_ page: String) -> Int {
        pages.append(page)
        return pages.count
    }
    distributed func writeLater(_ page: String) async -> Int {
        await Task.yield()
        return write(page)
    }
    distributed func writeAndThrow(_ page: String) throws {
        pages.append(page)
        throw Closed(reason: "after \(page)")
    }
    distributed func own(_ name: String) { owner = name }
    distributed func read() -> [String] {
        readers += 1
        return pages
    }
    distributed func whose() -> String { owner }
}

/// A state that JSON cannot encode when it is not finite.
@Trebuchet
distributed actor Scale {
    @StreamedState(persisted: true) var weight: Double = 0

    distributed func put(_ weight: Double) { self.weight += weight }
    distributed func breakDown() { weight = .infinity }
    distributed func mend() { weight = 1 }
}

struct Account: Codable, Sendable, Identifiable, Equatable {
    let id: Int
    var balance: Int
}

/// A state that tracks its changes, and states that are compared to find them.
@Trebuchet
distributed actor Vault {
    @StreamedState(persisted: true) var accounts = KeyedCollection<Account>()
    @StreamedState(persisted: true) var notes: [String] = []
    @StreamedState(delivery: .every(), persisted: true) var steps: [Int] = []

    distributed func open(_ count: Int) {
        accounts = KeyedCollection((0..<count).map { Account(id: $0, balance: 100) })
    }
    distributed func move(_ amount: Int, from: Int, to: Int) {
        accounts.update(id: from) { $0.balance -= amount }
        accounts.update(id: to) { $0.balance += amount }
    }
    distributed func raise(_ count: Int) {
        for id in 0..<count { accounts.update(id: id) { $0.balance += 1 } }
    }
    distributed func add(_ id: Int, at index: Int) { accounts.insert(Account(id: id, balance: id), at: index) }
    distributed func remove(_ id: Int) { accounts.remove(id: id) }
    distributed func all() -> [Account] { Array(accounts) }
    distributed func note(_ notes: [String]) { self.notes = notes }
    distributed func change(_ index: Int, to note: String) { notes[index] = note }
    distributed func allNotes() -> [String] { notes }
    distributed func step(_ count: Int) { for _ in 0..<count { steps.append(steps.count) } }
    distributed func allSteps() -> [Int] { steps }
}
