! Fortran's way to commprof.h, through commprof_marks.c, which is to be compiled with it.
module commprof_marks
    use, intrinsic :: iso_c_binding, only: c_char, c_null_char
    implicit none
    private
    public :: commprof_mark_step, commprof_mark_region_begin, commprof_mark_region_end

    interface
        subroutine commprof_mark_step() bind(C)
        end subroutine
        subroutine commprof_mark_region_end() bind(C)
        end subroutine
        subroutine region_begin(name) bind(C, name="commprof_mark_region_begin")
            import :: c_char
            character(kind=c_char), intent(in) :: name(*)
        end subroutine
    end interface

contains

    subroutine commprof_mark_region_begin(name)
        character(len=*), intent(in) :: name
        call region_begin(trim(name)//c_null_char)
    end subroutine
end module
