import Platform
import Trebuchet

/// State changes that are reproducible by seed.
struct RandomChanges {
    private var random: RandomSource
    private var lastID: Int

    init(seed: UInt64) {
        random = RandomSource(seed: seed)
        // Different for each seed, so that ids do not collide.
        lastID = Int(seed) * 1_000_000
    }

    mutating func change(_ entries: inout KeyedCollection<Entry>) {
        let present = entries.randomElement(using: &random)?.id
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<3: entries.insert(entry(), at: Int.random(in: 0...entries.count, using: &random))
        case 3..<5: if let present { entries.remove(id: present) }
        case 5..<8:
            if let present { entries.move(id: present, to: Int.random(in: 0..<entries.count, using: &random)) }
        case 8: if Int.random(in: 0..<20, using: &random) == 0 { entries = KeyedCollection(entries.prefix(20)) }
        case 9: if Int.random(in: 0..<20, using: &random) == 0 { entries.removeAll() }
        default: if let present { entries.update(id: present) { $0.title = "\(random.next() % 1000)" } }
        }
    }

    mutating func change(_ plan: inout Plan) {
        switch Int.random(in: 0..<10, using: &random) {
        case 0: plan.name = "\(random.next() % 1000)"
        case 1..<6: change(&plan.first)
        default: change(&plan.second)
        }
    }

    private mutating func entry() -> Entry {
        lastID += 1
        return Entry(id: lastID, title: "new \"\(lastID)\"/~")
    }
}
