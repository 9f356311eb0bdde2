//! Launches whose arguments are checked: types by the compiler, devices and recording at run time.
//!
//! The emulator also compares arguments with the source of the kernel.

use std::marker::PhantomData;

use super::{Cuda, Launch, Specialisation};
use crate::{Buffer, DeviceError, Element};

/// A kernel by its name in a program, and the types of its parameters.
///
/// `A` is a tuple of [`Argument`]s; a launch with other types or another number of them does not compile.
#[derive(Debug)]
pub struct Kernel<A> {
    name: &'static str,
    arguments: PhantomData<fn(A)>,
}

impl<A: Arguments> Kernel<A> {
    /// The kernel `name`, an `extern "C"` function of the program that it is launched from.
    pub const fn new(name: &'static str) -> Self {
        Self { name, arguments: PhantomData }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The C types of its parameters.
    pub fn signature(&self) -> Vec<String> {
        A::signature()
    }
}

/// An array that a kernel reads.
#[derive(Debug, Clone, Copy)]
pub struct Read<T> {
    address: u64,
    device: Option<u64>,
    values: PhantomData<T>,
}

/// An array that a kernel writes, and may read.
#[derive(Debug, Clone, Copy)]
pub struct Write<T> {
    address: u64,
    device: Option<u64>,
    values: PhantomData<T>,
}

impl<T: Element> Read<T> {
    /// No array: a null pointer.
    pub fn none() -> Self {
        Self { address: 0, device: None, values: PhantomData }
    }

    /// The array of a buffer, from its entry `offset` on.
    ///
    /// # Panics
    /// When `offset` lies beyond the end.
    pub fn from(buffer: &Buffer<T, Cuda>, offset: usize) -> Self {
        assert!(offset <= buffer.len(), "offset {offset} in a buffer of {}", buffer.len());
        let address = buffer.memory().address() + (offset * size_of::<T>()) as u64;
        Self { address, device: Some(buffer.device().id()), values: PhantomData }
    }
}

impl<T: Element> Write<T> {
    /// No array: a null pointer.
    pub fn none() -> Self {
        Self { address: 0, device: None, values: PhantomData }
    }

    /// The array of a buffer, from its entry `offset` on.
    ///
    /// # Panics
    /// When `offset` lies beyond the end.
    pub fn from(buffer: &mut Buffer<T, Cuda>, offset: usize) -> Self {
        assert!(offset <= buffer.len(), "offset {offset} in a buffer of {}", buffer.len());
        let address = buffer.memory().address() + (offset * size_of::<T>()) as u64;
        Self { address, device: Some(buffer.device().id()), values: PhantomData }
    }
}

impl<T: Element> Buffer<T, Cuda> {
    /// The array as an argument that a kernel reads.
    pub fn read(&self) -> Read<T> {
        Read::from(self, 0)
    }

    /// Returns the address of the array, for a [`Structure`], whose arrays a launch does not check.
    ///
    /// # Errors
    /// [`DeviceError::OtherDevice`] when it is not on `device`.
    pub fn address_on(&self, device: &Cuda) -> Result<u64, DeviceError> {
        if self.device().id() != device.id() {
            let device = device.to_string();
            return Err(DeviceError::OtherDevice { kernel: "a structure", argument: 0, device });
        }
        Ok(self.memory().address())
    }

    /// The array as an argument that a kernel writes.
    pub fn write(&mut self) -> Write<T> {
        Write::from(self, 0)
    }
}

/// A structure of 64-bit fields, passed by value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Structure(pub Vec<u64>);

/// One argument of a kernel.
pub trait Argument {
    /// The C type of the parameter, as the source spells it without names.
    fn c_type() -> String;
    /// Returns its bytes, at most eight except for structures; `buffer` may store them.
    fn bytes<'a>(&'a self, buffer: &'a mut [u8; SCALAR_BYTES]) -> &'a [u8];
    /// The device that holds it, if it is an array.
    fn device(&self) -> Option<u64> {
        None
    }
}

/// Bytes of the largest argument that is not a structure.
pub const SCALAR_BYTES: usize = 8;

impl<T: Element> Argument for T {
    fn c_type() -> String {
        T::C_NAME.into()
    }
    fn bytes<'a>(&'a self, _room: &'a mut [u8; SCALAR_BYTES]) -> &'a [u8] {
        bytemuck::bytes_of(self)
    }
}

fn address_bytes(address: u64, buffer: &mut [u8; SCALAR_BYTES]) -> &[u8] {
    *buffer = address.to_ne_bytes();
    buffer
}

impl<T: Element> Argument for Read<T> {
    fn c_type() -> String {
        format!("const {}*", T::C_NAME)
    }
    fn bytes<'a>(&'a self, buffer: &'a mut [u8; SCALAR_BYTES]) -> &'a [u8] {
        address_bytes(self.address, buffer)
    }
    fn device(&self) -> Option<u64> {
        self.device
    }
}

impl<T: Element> Argument for Write<T> {
    fn c_type() -> String {
        format!("{}*", T::C_NAME)
    }
    fn bytes<'a>(&'a self, buffer: &'a mut [u8; SCALAR_BYTES]) -> &'a [u8] {
        address_bytes(self.address, buffer)
    }
    fn device(&self) -> Option<u64> {
        self.device
    }
}

impl Argument for Structure {
    fn c_type() -> String {
        "struct".into()
    }
    fn bytes<'a>(&'a self, _room: &'a mut [u8; SCALAR_BYTES]) -> &'a [u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// Receives the bytes of all arguments of a launch.
pub type TakeBytes<'a> = dyn FnMut(&[&[u8]]) -> Result<(), DeviceError> + 'a;
/// Checks the device of the argument with this number.
pub type CheckDevice<'a> = dyn FnMut(usize, u64) -> Result<(), DeviceError> + 'a;

/// A tuple of [`Argument`]s.
pub trait Arguments {
    /// The C types of the parameters.
    fn signature() -> Vec<String>
    where
        Self: Sized;
    /// Calls `check` with the device of each array, then `launch` with the bytes of all arguments.
    fn with_bytes(&self, check: &mut CheckDevice<'_>, launch: &mut TakeBytes<'_>) -> Result<(), DeviceError>;
}

macro_rules! arguments {
    ($($name:ident $index:tt),*) => {
        impl<$($name: Argument),*> Arguments for ($($name,)*) {
            fn signature() -> Vec<String> {
                vec![$($name::c_type()),*]
            }
            fn with_bytes(
                &self,
                check: &mut CheckDevice<'_>,
                launch: &mut TakeBytes<'_>,
            ) -> Result<(), DeviceError> {
                $(if let Some(device) = self.$index.device() { check($index, device)?; })*
                launch(&[$(self.$index.bytes(&mut [0; SCALAR_BYTES])),*])
            }
        }
    };
}

arguments!(A 0);
arguments!(A 0, B 1);
arguments!(A 0, B 1, C 2);
arguments!(A 0, B 1, C 2, D 3);
arguments!(A 0, B 1, C 2, D 3, E 4);
arguments!(A 0, B 1, C 2, D 3, E 4, F 5);
arguments!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
arguments!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
arguments!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
arguments!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
arguments!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
arguments!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
arguments!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12);
arguments!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13);
arguments!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14);
arguments!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15);

impl Cuda {
    /// Queues `kernel` of `program`; nothing happens if the launch has no blocks.
    ///
    /// # Errors
    /// [`DeviceError::OtherDevice`] when an array lies on another device; errors of compiling and launching.
    ///
    /// # Safety
    /// With these arguments the kernel reads and writes only inside the arrays that it is given.
    pub unsafe fn launch<A: Arguments>(
        &self,
        program: &Specialisation,
        kernel: &Kernel<A>,
        launch: Launch,
        arguments: A,
    ) -> Result<(), DeviceError> {
        // SAFETY: the types are those of the kernel, and the caller vouches for what it touches.
        unsafe { self.launch_arguments(program, (kernel.name, A::signature), &launch, &arguments) }
    }

    /// As [`Cuda::launch`], compiled once for all types of arguments.
    ///
    /// # Safety
    /// As [`Cuda::launch`], for arguments of this signature.
    unsafe fn launch_arguments(
        &self,
        program: &Specialisation,
        (kernel, signature): (&'static str, fn() -> Vec<String>),
        launch: &Launch,
        arguments: &dyn Arguments,
    ) -> Result<(), DeviceError> {
        if launch.is_empty() {
            return Ok(());
        }
        let function = self.function(program, kernel, signature)?;
        arguments.with_bytes(
            &mut |argument, device| {
                if device == self.id() {
                    return Ok(());
                }
                Err(DeviceError::OtherDevice { kernel, argument, device: self.to_string() })
            },
            &mut |bytes| {
                // SAFETY: what the caller promises.
                unsafe { self.driver().launch(function, launch, bytes) }?;
                self.count_launch(kernel, bytes);
                Ok(())
            },
        )
    }
}
