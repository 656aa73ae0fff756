import Testing

@testable import Relays

struct VersionedValueTests {
    @Test("a new reader gets the first value")
    func firstValue() {
        let state = VersionedValue("a")
        #expect(describe(state.step(after: 0)) == "a v1")
        #expect(describe(state.step(after: 1)) == "wait")
    }

    @Test("a reader that missed versions gets only the newest")
    func skipping() {
        var state = VersionedValue("a")
        #expect(state.replace(with: "b") == "a")
        #expect(state.replace(with: "c") == "b")
        #expect(describe(state.step(after: 1)) == "c v3")
    }

    @Test("a finished state serves its last value and then the end")
    func finishing() {
        var state = VersionedValue("a")
        state.isFinished = true
        #expect(describe(state.step(after: 0)) == "a v1")
        #expect(describe(state.step(after: 1)) == "end")
    }

    @Test("a finished state does not change")
    func frozen() {
        var state = VersionedValue("a")
        state.isFinished = true
        #expect(state.replace(with: "b") == "b")
        let length = state.mutate { value in
            value += "bc"
            return value.count
        }
        #expect(length == 3)
        #expect(state.value == "a")
        #expect(state.version == 1)
    }

    @Test("a change that throws publishes its partial result as a new version")
    func throwingChange() {
        var state = VersionedValue("a")
        #expect(throws: Refusal.self) {
            try state.mutate { value in
                value = "half"
                throw Refusal()
            }
        }
        #expect(describe(state.step(after: 1)) == "half v2")
    }

    private func describe(_ step: VersionedValue<String>.Step?) -> String {
        switch step {
        case .value(let value, let version): "\(value) v\(version)"
        case .end: "end"
        case nil: "wait"
        }
    }
}

struct Refusal: Error {}
