import StateMachines
import Testing

@Suite("Case key paths")
struct CaseKeyPathTests {
    @CasePathable
    enum Shape: Equatable {
        case circle(radius: Int)
        case box(width: Int, height: Int)
        case `default`
        case nested(Inner)
    }

    @CasePathable
    enum Inner: Equatable {
        case word(String)
        case nothing
    }

    @Test("a case key path extracts a payload from its case, and nil from another")
    func extraction() {
        #expect(Shape.circle(radius: 3)[case: \.circle] == 3)
        #expect(Shape.box(width: 1, height: 2)[case: \.box]?.height == 2)
        #expect(Shape.box(width: 1, height: 2)[case: \.circle] == nil)
        #expect(Shape.default.is(\.default))
        #expect(!Shape.default.is(\.circle))
    }

    @Test("case key paths compose through nested enums, in both directions")
    func nesting() {
        let path = AnyCasePath<Shape, String>(\.nested.word)
        #expect(path.extract(.nested(.word("a"))) == "a")
        #expect(path.extract(.nested(.nothing)) == nil)
        #expect(path.extract(.default) == nil)
        #expect(path.embed("b") == .nested(.word("b")))
        #expect(Shape.nested(.nothing).is(\.nested.nothing))
    }

    @Test("a case key path reaches a result and its error")
    func result() {
        struct Failure: Error, Equatable {}
        typealias Answer = Result<Int, Failure>
        let path = AnyCasePath<Answer, Int>(\.success)
        #expect(path.extract(.success(1)) == 1 && path.extract(.failure(Failure())) == nil)
        #expect(path.embed(2) == .success(2))
        #expect(Answer.failure(Failure())[case: \.failure] == Failure())
        #expect(Answer.success(1).is(\.success))
    }

    @Test("a nil payload is distinguished from another case")
    func optionalPayload() {
        let value = Maybe<Int>.number(nil)
        #expect(value.is(\.number))
        #expect(!Maybe<Int>.other.is(\.number))
        #expect(AnyCasePath<Maybe<Int>, Int?>(\.number).embed(4) == .number(4))
    }

    @CasePathable
    enum Maybe<Value: Equatable & Sendable>: Equatable {
        case number(Value?)
        case other
    }
}
