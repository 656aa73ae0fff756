import Synchronization

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Creates dates: `date.now`, or `date()`.
public struct DateGenerator: Sendable {
    private var generate: @Sendable () -> Date

    /// Creates a generator.
    ///
    /// - Parameter generate: called for each date.
    public init(_ generate: @escaping @Sendable () -> Date) { self.generate = generate }

    /// Returns a generator of a constant date.
    public static func constant(_ now: Date) -> Self { Self { now } }

    /// The current date. Assignment makes it constant.
    public var now: Date {
        get { generate() }
        set { generate = { newValue } }
    }

    /// Returns the current date.
    public func callAsFunction() -> Date { generate() }
}

/// Creates ids: `uuid()`.
public struct UUIDGenerator: Sendable {
    private let generate: @Sendable () -> UUID

    /// Creates a generator.
    ///
    /// - Parameter generate: called for each id.
    public init(_ generate: @escaping @Sendable () -> UUID) { self.generate = generate }

    /// Returns a generator of a constant id.
    public static func constant(_ uuid: UUID) -> Self { Self { uuid } }

    /// A generator of `UUID(0)`, `UUID(1)` and so on. Each access returns a new generator, which starts at 0.
    public static var incrementing: Self {
        let count = Counter()
        return Self { UUID(count.next()) }
    }

    /// Returns a new id.
    public func callAsFunction() -> UUID { generate() }

    /// A thread-safe counter from 0.
    private final class Counter: Sendable {
        private let value = Atomic(0)
        func next() -> Int { value.wrappingAdd(1, ordering: .relaxed).oldValue }
    }
}

extension UUID {
    /// Creates an id that ends with a number, for tests: `UUID(1)` is `00000000-0000-0000-0000-000000000001`.
    public init(_ number: Int) {
        let bits = UInt64(bitPattern: Int64(number))
        func byte(_ index: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: bits >> (index * 8)) }
        self.init(
            uuid: (
                0, 0, 0, 0, 0, 0, 0, 0, byte(7), byte(6), byte(5), byte(4), byte(3), byte(2), byte(1), byte(0)
            ))
    }
}

extension DependencyValues {
    /// The date. A test must provide it: `$0.date.now = Date(timeIntervalSince1970: 0)`.
    public var date: DateGenerator {
        get { self[DateKey.self] }
        set { self[DateKey.self] = newValue }
    }

    /// New ids. A test must provide them: `$0.uuid = .incrementing`.
    public var uuid: UUIDGenerator {
        get { self[UUIDKey.self] }
        set { self[UUIDKey.self] = newValue }
    }

    /// The user's calendar. A test must provide it.
    public var calendar: Calendar {
        get { self[CalendarKey.self] }
        set { self[CalendarKey.self] = newValue }
    }

    /// The user's locale. A test must provide it.
    public var locale: Locale {
        get { self[LocaleKey.self] }
        set { self[LocaleKey.self] = newValue }
    }

    /// The user's time zone. A test must provide it.
    public var timeZone: TimeZone {
        get { self[TimeZoneKey.self] }
        set { self[TimeZoneKey.self] = newValue }
    }
}

/// The key of ``DependencyValues/date``.
private enum DateKey: DependencyKey {
    static let liveValue = DateGenerator { Date() }
    static var testValue: DateGenerator { DateGenerator(unimplemented("date", placeholder: Date())) }
}

/// The key of ``DependencyValues/uuid``.
private enum UUIDKey: DependencyKey {
    static let liveValue = UUIDGenerator { UUID() }
    static var testValue: UUIDGenerator { UUIDGenerator(unimplemented("uuid", placeholder: UUID())) }
}

/// The key of ``DependencyValues/calendar``.
private enum CalendarKey: DependencyKey {
    static var liveValue: Calendar { .autoupdatingCurrent }
    static var testValue: Calendar {
        DependencyValues.reportUnimplemented("Unimplemented: calendar. Give it a value with 'withDependencies'.")
        return liveValue
    }
}

/// The key of ``DependencyValues/locale``.
private enum LocaleKey: DependencyKey {
    static var liveValue: Locale { .autoupdatingCurrent }
    static var testValue: Locale {
        DependencyValues.reportUnimplemented("Unimplemented: locale. Give it a value with 'withDependencies'.")
        return liveValue
    }
}

/// The key of ``DependencyValues/timeZone``.
private enum TimeZoneKey: DependencyKey {
    static var liveValue: TimeZone { .autoupdatingCurrent }
    static var testValue: TimeZone {
        DependencyValues.reportUnimplemented("Unimplemented: timeZone. Give it a value with 'withDependencies'.")
        return liveValue
    }
}
