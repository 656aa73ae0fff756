import Trebuchet

struct Entry: Codable, Sendable, Identifiable, Equatable {
    let id: Int
    var title: String
    var isDone = false

    /// `count` entries with ids from 0.
    static func entries(_ count: Int) -> [Entry] { (0..<count).map { Entry(id: $0, title: "entry number \($0)") } }
}

/// A struct whose members track their changes.
struct Plan: DeltaRecord, Equatable {
    @DeltaValue var name = ""
    var first = KeyedCollection<Entry>()
    var second = KeyedCollection<Entry>()

    static let deltaMembers: [DeltaMember<Plan>] = [
        DeltaMember("name", \._name), DeltaMember("first", \.first), DeltaMember("second", \.second),
    ]
}

/// States that track their changes.
@Trebuchet
distributed actor Backlog {
    @StreamedState var entries = KeyedCollection<Entry>()
    @StreamedState var plan = Plan()

    distributed func fill(_ count: Int) {
        entries = KeyedCollection(Entry.entries(count))
        plan = Plan(name: "plan", first: entries, second: [])
    }

    distributed func rename(_ id: Int, _ title: String) { entries.update(id: id) { $0.title = title } }
    distributed func put(_ entry: Entry) { entries.updateOrAppend(entry) }
    distributed func clear() { entries.removeAll() }
    /// An access without a change.
    distributed func touch() { entries.remove(id: -1) }
    distributed func count() -> Int { entries.count }
    distributed func all() -> [Entry] { Array(entries) }
    distributed func name(_ name: String) { plan.name = name }
    distributed func finish(_ id: Int) {
        guard let entry = plan.first.remove(id: id) else { return }
        plan.second.append(entry)
    }
    /// Random changes of all states, reproducible by seed.
    distributed func shuffle(seed: UInt64, changes: Int) {
        var random = RandomChanges(seed: seed)
        for _ in 0..<changes {
            random.change(&entries)
            random.change(&plan)
        }
    }
    distributed func current() -> Plan { plan }
}

/// `Backlog` on the global pool, where each change is a version.
@Trebuchet(executor: .concurrent)
distributed actor ConcurrentBacklog {
    @StreamedState var entries = KeyedCollection<Entry>()

    distributed func fill(_ count: Int) { entries = KeyedCollection(Entry.entries(count)) }
    distributed func rename(_ id: Int, _ title: String) { entries.update(id: id) { $0.title = title } }
}

/// A server actor with the names of `Backlog`, whose state does not track changes.
@Trebuchet
distributed actor PlainBacklog {
    @StreamedState var entries: [Entry] = []

    distributed func fill(_ count: Int) { entries = Entry.entries(count) }
    distributed func rename(_ id: Int, _ title: String) { entries[id].title = title }
}

/// Values that cannot always be encoded as JSON.
@Trebuchet
distributed actor UnencodableValueActor {
    struct Gauge: Codable, Sendable, Identifiable {
        let id: Int
        var value = 0.0
    }

    @StreamedState var entries = KeyedCollection<Gauge>((0..<100).map { Gauge(id: $0) })

    distributed func set(_ id: Int, _ value: Double) { entries.update(id: id) { $0.value = value } }
    /// Sets one gauge to a value and another one to a value that JSON cannot represent.
    distributed func spoil(_ id: Int, setting other: Int, to value: Double) {
        set(other, value)
        set(id, .infinity)
    }
}
