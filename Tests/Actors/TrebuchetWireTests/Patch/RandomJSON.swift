import Platform

/// Random values, changes and patches, reproducible by seed.
struct RandomJSON: RandomNumberGenerator {
    private var source: RandomSource

    init(seed: UInt64) { source = RandomSource(seed: seed) }

    mutating func next() -> UInt64 { source.next() }

    mutating func pick(from count: Int) -> Int { Int.random(in: 0..<count, using: &self) }

    private static let names = [
        "", "a", "b", "id", "a/b", "~", "~1", "m~n", "é", "ключ", "😀", "\"", "\\", "-", "0", "01", "a b", "\u{1}",
        "a name that is long enough to be compared in words",
    ]

    mutating func name() -> String { Self.names.randomElement(using: &self)! }

    mutating func scalar() -> JSONTree {
        switch pick(from: 6) {
        case 0: .scalar(["true", "false", "null"][pick(from: 3)])
        case 1: .scalar("\(pick(from: 2_000) - 1_000).\(pick(from: 9) + 1)")
        case 2, 3: .scalar("\(pick(from: 20))")
        default: .string(name())
        }
    }

    mutating func value(depth: Int) -> JSONTree {
        switch depth == 0 ? 0 : pick(from: 5) {
        case 0, 1: return scalar()
        case 2, 3: return .array((0..<pick(from: 6)).map { _ in value(depth: depth - 1) })
        default:
            return .object(
                Dictionary((0..<pick(from: 6)).map { _ in (name(), value(depth: depth - 1)) }, uniquingKeysWith: { $1 })
            )
        }
    }

    /// The value with some of its parts changed, added, removed and moved.
    mutating func changed(_ value: JSONTree) -> JSONTree {
        switch value {
        case .array(var elements):
            for _ in 0...pick(from: 2) {
                switch pick(from: 7) {
                case 0: elements.insert(self.value(depth: 2), at: pick(from: elements.count + 1))
                case 1 where !elements.isEmpty: elements.remove(at: pick(from: elements.count))
                case 2 where !elements.isEmpty:
                    elements.insert(elements.remove(at: pick(from: elements.count)), at: pick(from: elements.count + 1))
                case 3 where !elements.isEmpty: elements.removeLast(pick(from: elements.count))
                case 4: elements.append(scalar())
                case _ where !elements.isEmpty:
                    let index = pick(from: elements.count)
                    elements[index] = changed(elements[index])
                default: break
                }
            }
            return .array(elements)
        case .object(var members):
            for _ in 0...pick(from: 2) {
                let known = members.keys.sorted().randomElement(using: &self)
                switch pick(from: 5) {
                case 0: members[name()] = self.value(depth: 2)
                case 1: if let known { members[known] = nil }
                default: if let known { members[known] = changed(members[known]!) }
                }
            }
            return .object(members)
        default: return pick(from: 4) == 0 ? self.value(depth: 2) : scalar()
        }
    }

    /// A list of a state: many elements of one kind.
    mutating func list(_ count: Int) -> JSONTree {
        .array(
            (0..<count).map { id in
                .object([
                    "id": .scalar("\(id)"), "title": .string(name()),
                    "isDone": .scalar(pick(from: 2) == 0 ? "true" : "false"),
                ])
            })
    }

    /// A path to a value in the tree; sometimes to none.
    mutating func path(in tree: JSONTree) -> [String] {
        if pick(from: 5) == 0 { return pick(from: 8) == 0 ? [name()] : [] }
        switch tree {
        case .array(let elements) where !elements.isEmpty:
            let index = pick(from: elements.count + 1)
            if index == elements.count { return [pick(from: 2) == 0 ? "-" : "\(index)"] }
            return ["\(index)"] + path(in: elements[index])
        case .object(let members) where !members.isEmpty:
            let name = members.keys.sorted().randomElement(using: &self)!
            return [name] + path(in: members[name]!)
        default: return pick(from: 12) > 0 ? [] : [["0", "-", "a"][pick(from: 3)]]
        }
    }
}
