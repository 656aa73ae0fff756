import Synchronization

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// What makes dates; `date.now`, or `date()`.
public struct DateGenerator: Sendable {
    private var generate: @Sendable () -> Date

    /// - Parameter generate: called for each date.
    public init(_ generate: @escaping @Sendable () -> Date) { self.generate = generate }

    /// Always the same date.
    public static func constant(_ now: Date) -> Self { Self { now } }

    /// The date now. Setting it stops the time there.
    public var now: Date {
        get { generate() }
        set { generate = { newValue } }
    }

    /// The date now.
    public func callAsFunction() -> Date { generate() }
}

/// What makes new ids: `uuid()`.
public struct UUIDGenerator: Sendable {
    private let generate: @Sendable () -> UUID

    /// - Parameter generate: called for each id.
    public init(_ generate: @escaping @Sendable () -> UUID) { self.generate = generate }

    /// Always the same id.
    public static func constant(_ uuid: UUID) -> Self { Self { uuid } }

    /// `UUID(0)`, `UUID(1)` and so on; each time this is asked for, from the beginning.
    public static var incrementing: Self {
        let count = Counter()
        return Self { UUID(count.next()) }
    }

    /// A new id.
    public func callAsFunction() -> UUID { generate() }

    private final class Counter: Sendable {
        private let value = Atomic(0)
        func next() -> Int { value.wrappingAdd(1, ordering: .relaxed).oldValue }
    }
}

extension UUID {
    /// The id that has a number at its end, for tests: `UUID(1)` is `00000000-0000-0000-0000-000000000001`.
    public init(_ number: Int) {
        let bits = UInt64(bitPattern: Int64(number))
        func byte(_ place: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: bits >> (place * 8)) }
        self.init(
            uuid: (
                0, 0, 0, 0, 0, 0, 0, 0, byte(7), byte(6), byte(5), byte(4), byte(3), byte(2), byte(1), byte(0)
            ))
    }
}

extension DependencyValues {
    /// The date. In a test it has to be given: `$0.date.now = Date(timeIntervalSince1970: 0)`.
    public var date: DateGenerator {
        get { self[DateKey.self] }
        set { self[DateKey.self] = newValue }
    }

    /// New ids. In a test they have to be given: `$0.uuid = .incrementing`.
    public var uuid: UUIDGenerator {
        get { self[UUIDKey.self] }
        set { self[UUIDKey.self] = newValue }
    }

    /// The user's calendar. In a test it has to be given.
    public var calendar: Calendar {
        get { self[CalendarKey.self] }
        set { self[CalendarKey.self] = newValue }
    }

    /// The user's locale. In a test it has to be given.
    public var locale: Locale {
        get { self[LocaleKey.self] }
        set { self[LocaleKey.self] = newValue }
    }

    /// The user's time zone. In a test it has to be given.
    public var timeZone: TimeZone {
        get { self[TimeZoneKey.self] }
        set { self[TimeZoneKey.self] = newValue }
    }
}

private enum DateKey: DependencyKey {
    static let liveValue = DateGenerator { Date() }
    static var testValue: DateGenerator { DateGenerator(unimplemented("date", placeholder: Date())) }
}

private enum UUIDKey: DependencyKey {
    static let liveValue = UUIDGenerator { UUID() }
    static var testValue: UUIDGenerator { UUIDGenerator(unimplemented("uuid", placeholder: UUID())) }
}

private enum CalendarKey: DependencyKey {
    static var liveValue: Calendar { .autoupdatingCurrent }
    static var testValue: Calendar {
        DependencyValues.reportUnimplemented("Unimplemented: calendar. Give it a value with 'withDependencies'.")
        return liveValue
    }
}

private enum LocaleKey: DependencyKey {
    static var liveValue: Locale { .autoupdatingCurrent }
    static var testValue: Locale {
        DependencyValues.reportUnimplemented("Unimplemented: locale. Give it a value with 'withDependencies'.")
        return liveValue
    }
}

private enum TimeZoneKey: DependencyKey {
    static var liveValue: TimeZone { .autoupdatingCurrent }
    static var testValue: TimeZone {
        DependencyValues.reportUnimplemented("Unimplemented: timeZone. Give it a value with 'withDependencies'.")
        return liveValue
    }
}
