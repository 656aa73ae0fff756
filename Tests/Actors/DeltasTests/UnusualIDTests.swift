import Deltas
import Platform
import Testing

/// Ids that break the usual assumptions.
@Suite("Keyed collections with unusual ids") struct UnusualIDTests {
    struct Reading: Codable, Sendable, Identifiable {
        let id: Double
        var value = 0
    }

    /// All have one hash, and are equal as rarely as others.
    struct EqualHashID: Codable, Hashable, Sendable {
        let number: Int
        func hash(into hasher: inout Hasher) {}
    }

    struct Colliding: Codable, Sendable, Identifiable, Equatable {
        let id: EqualHashID
        var value = 0
    }

    @Test("an element whose id is not equal to itself is sent with the whole value, and does not end the process")
    func nan() async {
        await #expect(processExitsWith: .success) {
            var readings = KeyedCollection<Reading>()
            readings.append(Reading(id: .nan))
            // Its changes are not known.
            precondition(readings.takeChanges()?.isKnown != true)
            readings.append(Reading(id: 1))
            precondition(readings.takeChanges()?.isKnown == true)
            precondition(readings.count == 2)
        }
    }

    @Test("ids with one hash are found, changed, moved and removed like others")
    func collisions() throws {
        var ours = KeyedCollection((0..<200).map { Colliding(id: EqualHashID(number: $0)) })
        var theirs = ours
        var model = Array(ours)
        var generator = RandomSource(seed: 7)
        var next = 200
        for round in 0..<2_000 {
            switch Int.random(in: 0..<4, using: &generator) {
            case 0:
                let index = Int.random(in: 0...model.count, using: &generator)
                let element = Colliding(id: EqualHashID(number: next))
                next += 1
                ours.insert(element, at: index)
                model.insert(element, at: index)
            case 1 where !model.isEmpty:
                let index = model.indices.randomElement(using: &generator)!
                #expect(ours.remove(id: model[index].id) == model.remove(at: index))
            case 2 where !model.isEmpty:
                let index = model.indices.randomElement(using: &generator)!
                ours.update(id: model[index].id) { $0.value = round }
                model[index].value = round
            case 3 where !model.isEmpty:
                let from = model.indices.randomElement(using: &generator)!
                let to = model.indices.randomElement(using: &generator)!
                ours.move(id: model[from].id, to: to)
                model.insert(model.remove(at: from), at: to)
            default: break
            }
            if round % 5 == 4 {
                if let changes = ours.takeChanges() { try theirs.apply(changes) } else { theirs = ours }
                #expect(Array(theirs) == model)
            }
        }
        #expect(Array(ours) == model)
    }

    @Test("changes of an update that throws are recorded, after moves and removals too")
    func throwing() throws {
        struct Failure: Error {}
        var ours = KeyedCollection((0..<40).map { Colliding(id: EqualHashID(number: $0)) })
        var theirs = ours
        func breakOrder(_ id: Int) {
            try? ours.update(id: EqualHashID(number: id)) {
                $0.value = 7
                throw Failure()
            }
        }
        func take() throws {
            let changes = ours.takeChanges()
            try theirs.apply(try #require(changes))
        }
        breakOrder(3)
        try take()
        #expect(Array(ours) == Array(theirs))
        breakOrder(5)
        ours.move(id: EqualHashID(number: 5), to: 20)
        ours.remove(id: EqualHashID(number: 2))
        breakOrder(30)
        try take()
        #expect(Array(ours) == Array(theirs))
    }
}
