import SharedState
import Testing

extension SharedReaderKey where Self == InMemoryKey<Int>.Default {
    fileprivate static var count: Self { Self[.inMemory("count"), default: 7] }
}

@Suite(.timeLimit(.minutes(5)))
struct SharedTests {
    private struct Profile: Equatable, Sendable {
        var name = "Blob"
        var age = 42
        var isAdult: Bool { age >= 18 }
    }

    private let store = SharedStore()

    @Test("two wrappers with one key share one value, and the first initial value counts")
    func oneReference() {
        @Shared(.inMemory("count"), store: store) var first = 1
        @Shared(.inMemory("count"), store: store) var second = 2
        #expect(second == 1)
        $second.withLock { $0 += 10 }
        #expect(first == 11)
        #expect(store.referenceCount == 1)
    }

    @Test("keys that differ in name, type or value type have separate values")
    func differentKeys() {
        @Shared(.inMemory("a"), store: store) var number = 1
        @Shared(.inMemory("b"), store: store) var other = 2
        @Shared(.inMemory("a"), store: store) var text = "a"
        let backend = Backend<Int>()
        @Shared(backend.key, store: store) var custom = 3
        $number.withLock { $0 = 10 }
        #expect(number == 10 && other == 2 && text == "a" && custom == 3)
        #expect(store.referenceCount == 4)
    }

    @Test("only the first wrapper evaluates its initial value")
    func lazyInitialValue() {
        func never() -> Int {
            Issue.record("a second wrapper evaluated its initial value")
            return 0
        }
        @Shared(.inMemory("count"), store: store) var first = 1
        @Shared(.inMemory("count"), store: store) var second = never()
        #expect(first == second)
    }

    @Test("a key with a default identifies the same value as the key alone")
    func defaultKey() {
        @Shared(.count, store: store) var count
        @Shared(.inMemory("count"), store: store) var plain = 1
        @Shared(.count, store: store) var withOther = 2
        @SharedReader(.count, store: store) var reader
        $plain.withLock { $0 += 1 }
        #expect([count, plain, withOther, reader] == [8, 8, 8, 8])
    }

    @Test("an optional value needs no initial one")
    func optional() {
        @Shared(.inMemory("name"), store: store) var name: String?
        #expect(name == nil)
        $name.withLock { $0 = "Blob" }
        @SharedReader(.inMemory("name"), store: store) var reader: String?
        #expect(reader == "Blob")
    }

    @Test("withLock returns its closure's result")
    func result() {
        @Shared(value: [3, 1, 2]) var numbers
        let last = $numbers.withLock { $0.removeLast() }
        #expect(last == 2)
        #expect(numbers == [3, 1])
    }

    @Test("when the closure of withLock throws, nothing has changed and nothing is saved")
    func rollback() {
        let backend = Backend<Int>()
        @Shared(backend.key, store: store) var count = 1
        #expect(throws: TestError()) {
            try $count.withLock {
                $0 = 5
                throw TestError()
            }
        }
        #expect(count == 1)
        #expect(backend.saves.isEmpty)
    }

    @Test("inside withLock other threads read the previous value")
    func readingInside() {
        @Shared(value: 1) var count
        $count.withLock {
            $0 = 2
            #expect(count == 1)
        }
        #expect(count == 2)
    }

    @Test("changing a value inside its own withLock traps")
    func nested() async {
        await #expect(processExitsWith: .failure) {
            let count = Shared(value: 1)
            count.withLock { _ in count.withLock { $0 = 3 } }
        }
    }

    @Test("a part of a shared value is shared itself")
    func derived() {
        @Shared(.inMemory("profile"), store: store) var profile = Profile()
        let age = $profile.age
        age.withLock { $0 += 1 }
        #expect(profile == Profile(name: "Blob", age: 43))
        $profile.withLock { $0.age = 10 }
        #expect(age.wrappedValue == 10)
        let isAdult: SharedReader<Bool> = $profile.isAdult
        #expect(!isAdult.wrappedValue)
    }

    @Test("an element is found by its id through a shared array")
    func derivedElement() {
        @Shared(value: [Numbered(id: 1), Numbered(id: 2)]) var items: IdentifiedArrayOf<Numbered>
        let second = $items[id: 2]
        second.withLock { $0?.text = "two" }
        #expect(items[1].text == "two")
        second.withLock { $0 = nil }
        #expect(items.ids == [1])
    }

    @Test("a reader derived from a wrapper, or with its key, sees the wrapper's changes")
    func reader() {
        @Shared(.inMemory("count"), store: store) var count = 1
        let ofWrapper = SharedReader($count)
        @SharedReader(.inMemory("count"), store: store) var ofKey = 0
        $count.withLock { $0 = 5 }
        #expect(ofWrapper.wrappedValue == 5)
        #expect(ofKey == 5)
    }

    @Test("a wrapper can be made to refer to another value")
    func redirect() {
        @Shared(.inMemory("a"), store: store) var count = 1
        @Shared(.inMemory("b"), store: store) var other = 2
        $count = $other
        $count.withLock { $0 = 9 }
        #expect(other == 9)
    }

    @Test("updates start with the current value and end with the newest")
    func updates() async {
        @Shared(value: 1) var count
        var updates = $count.updates.makeAsyncIterator()
        #expect(await updates.next(isolation: #isolation) == 1)
        $count.withLock { $0 = 2 }
        $count.withLock { $0 = 3 }
        #expect(await updates.next(isolation: #isolation) == 3)
    }

    @Test("updates of a part arrive with the changes of the whole")
    func derivedUpdates() async {
        @Shared(value: Profile()) var profile
        var ages = $profile.age.updates.makeAsyncIterator()
        #expect(await ages.next(isolation: #isolation) == 42)
        $profile.withLock { $0.age = 43 }
        #expect(await ages.next(isolation: #isolation) == 43)
    }
}

struct Numbered: Identifiable, Codable, Hashable, Sendable {
    var id: Int
    var text = ""
}
