/// A value that belongs to an event loop. The box may be passed to other threads; the value is used on its loop only.
///
/// Debug builds check each use. Release builds store and check nothing. The value may be freed on any thread.
package struct LoopBound<Value>: @unchecked Sendable {
    // Right because no code on another thread reaches the value: it was on the loop, or was passed there by the only code that had
    // it, and debug builds check each access.
    @usableFromInline let bound: Value
    #if DEBUG
        @usableFromInline let loop: any EventLoop
    #endif

    /// Binds a value of the loop. Only on the loop.
    @inlinable
    package init(_ value: Value, on loop: any EventLoop) {
        loop.assertCurrent()
        bound = value
        #if DEBUG
            self.loop = loop
        #endif
    }

    /// Passes a value that no other code has to a loop.
    @inlinable
    package init(passing value: sending Value, to loop: any EventLoop) {
        bound = value
        #if DEBUG
            self.loop = loop
        #endif
    }

    /// The value. Only on the loop.
    @inlinable package var value: Value {
        #if DEBUG
            loop.assertCurrent()
        #endif
        return bound
    }
}

/// A variable of an object that may be passed to other threads; it is read and written on one event loop only.
///
/// Debug builds check each use. The value may be freed on any thread.
package final class LoopVariable<Value>: @unchecked Sendable {
    // Right for the reason stated at `LoopBound`.
    @usableFromInline var bound: Value
    #if DEBUG
        @usableFromInline let loop: any EventLoop
    #endif

    /// Creates a variable for use on a loop.
    @inlinable
    package init(_ value: sending Value, on loop: any EventLoop) {
        bound = value
        #if DEBUG
            self.loop = loop
        #endif
    }

    /// The value. Only on the loop.
    @inlinable package var value: Value {
        get {
            check()
            return bound
        }
        _modify {
            check()
            yield &bound
        }
    }

    @inlinable
    func check() {
        #if DEBUG
            loop.assertCurrent()
        #endif
    }
}
