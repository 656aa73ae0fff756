internal import Bytes

extension ServerEvent {
    /// What a call has failed with, beside the code of its error.
    public struct Failure: Sendable, Equatable {
        /// The number of the call.
        public let call: UInt64
        /// What its method threw, as the program calls it: `Demo.Shop.Problem.soldOut`. Nothing of what is in it. Nil of an error of the framework's.
        public let thrown: String?
        /// The number under which the log has its text; nil where that went to the caller.
        public let number: String?
        /// Why its arguments do not fit. It may have of them in it, so it is for the inspector alone.
        package let reason: String?

        package init(call: UInt64, thrown: String?, number: String?, reason: String? = nil) {
            (self.call, self.thrown, self.number) = (call, thrown, number)
            self.reason = reason?.prefix(bytes: 512)
        }
    }
}
